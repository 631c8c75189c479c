// collector ADDRESS: the receiver of a collector of OpenTelemetry, without the rest. Prints what
// comes as JSON, a line for each request, as it understood it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func print(_ context.Context, traces ptrace.Traces) error {
	text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
	must(err)
	fmt.Println(string(text))
	return nil
}

func main() {
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	must(confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{
		"http": map[string]any{"endpoint": os.Args[1]}}}).Unmarshal(&config))
	sink, err := consumer.NewTraces(print)
	must(err)
	receiver, err := factory.CreateTraces(context.Background(),
		receivertest.NewNopSettings(factory.Type()), config, sink)
	must(err)
	must(receiver.Start(context.Background(), componenttest.NewNopHost()))
	fmt.Println("ready")
	over, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-over.Done()
	must(receiver.Shutdown(context.Background()))
}
