// Packed reads and writes what lies between .goreleaser.yaml and the packages'
// own tools, for ci/package:
//
//	go run ./ci/packed nfpm BINARY VERSION DATE   the packages of .goreleaser.yaml as nfpm's own configuration
//	go run ./ci/packed apk FILE                   checks an apk as apk-tools would, and lists it
//	go run ./ci/packed nar DIR                    the hash of a directory that Nix would want
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "packed: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 4 && args[0] == "nfpm":
		text, err := os.ReadFile(".goreleaser.yaml")
		if err != nil {
			return err
		}
		out, err := nfpmConfig(text, args[1], args[2], args[3])
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(out)
		return err
	case len(args) == 2 && args[0] == "apk":
		f, err := os.Open(args[1])
		if err != nil {
			return err
		}
		defer f.Close()
		return listAPK(os.Stdout, f)
	}
	if len(args) == 2 && args[0] == "nar" {
		hash, err := narHash(args[1])
		if err != nil {
			return err
		}
		_, err = fmt.Println(hash)
		return err
	}
	return fmt.Errorf("usage: packed nfpm BINARY VERSION DATE | packed apk FILE | packed nar DIR")
}
