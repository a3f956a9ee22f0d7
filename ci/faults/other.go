//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "faults: launches are traced with Linux's ptrace(2)")
	os.Exit(1)
}
