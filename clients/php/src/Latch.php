<?php
declare(strict_types=1);

namespace Latchd;

/** Is set to a number, counted down, and opens at 0: of Latchd::latch(). */
final class Latch
{
    /** @internal */
    public function __construct(private readonly Latchd $latchd, public readonly string $name)
    {
    }

    /** False: one is set already. With an ID it can be repeated, and has the same answer. */
    public function set(int $count, ?string $id = null): bool
    {
        return $this->latchd->insist(['LATCH', 'SET', $this->name, $count, 'ID', $id ?? Latchd::newId()]) === 1;
    }

    /** The number that is left. An ID, of 16 to 64 characters, counts once; without one each call counts. */
    public function count(?string $id = null): int
    {
        return $this->latchd->insist(['LATCH', 'COUNT', $this->name, 'ID', $id ?? Latchd::newId()]);
    }

    /**
     * True: it is open. False: `timeout` seconds (null: no end) are over.
     *
     * @throws LatchGone if it was deleted or lost
     */
    public function wait(?float $timeout = null): bool
    {
        $deadline = Latchd::deadline($timeout ?? INF);
        do {
            $slice = max(0.0, min($deadline - Latchd::clock(), Latchd::LONGEST_ASK_S));
            $open = $this->latchd->insist(['LATCH', 'AWAIT', $this->name, 'WAIT', Latchd::milliseconds($slice)], $slice);
        } while ($open === null && Latchd::clock() < $deadline);
        return $open === 1;
    }

    /** False: there was none. */
    public function delete(): bool
    {
        return $this->latchd->insist(['LATCH', 'DELETE', $this->name]) === 1;
    }
}
