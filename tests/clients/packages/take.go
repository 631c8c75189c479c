// Takes a lock with the installed package: take URL NAME. Prints the token; gives it back at the end of its input.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"latchd.example/latchd"
)

func main() {
	client, err := latchd.New(os.Args[1:2])
	if err != nil {
		log.Fatal(err)
	}
	_, token, unlock, err := client.Lock(context.Background(), os.Args[2], latchd.Wait(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(token)
	io.Copy(io.Discard, os.Stdin)
	if err := unlock(); err != nil {
		log.Fatal(err)
	}
}
