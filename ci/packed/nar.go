package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// narHash is the hash that Nix has for the content of a directory, as flake.nix
// spells it ("sha256-..."): of its archive in Nix's own format (the Nix manual,
// "Nix Archive (NAR) format"). So a vendorHash can be known without Nix.
func narHash(dir string) (string, error) {
	sum := sha256.New()
	words(sum, "nix-archive-1")
	if err := node(sum, dir); err != nil {
		return "", err
	}
	return "sha256-" + base64.StdEncoding.EncodeToString(sum.Sum(nil)), nil
}

// words writes strings: the length, the bytes, and zeros up to a multiple of 8.
func words(w io.Writer, list ...string) {
	for _, s := range list {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		w.Write(n[:])
		io.WriteString(w, s)
		w.Write(make([]byte, (8-len(s)%8)%8))
	}
}

func node(w io.Writer, name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	words(w, "(", "type")
	switch {
	case info.IsDir():
		words(w, "directory")
		list, err := os.ReadDir(name) // in the order of their names
		if err != nil {
			return err
		}
		for _, e := range list {
			words(w, "entry", "(", "name", e.Name(), "node")
			if err := node(w, filepath.Join(name, e.Name())); err != nil {
				return err
			}
			words(w, ")")
		}
	case info.Mode().IsRegular():
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		words(w, "regular")
		if info.Mode()&0o100 != 0 {
			words(w, "executable", "")
		}
		words(w, "contents", string(text))
	case info.Mode()&os.ModeSymlink != 0:
		to, err := os.Readlink(name)
		if err != nil {
			return err
		}
		words(w, "symlink", "target", to)
	default:
		return fmt.Errorf("%q is neither a file, a directory nor a link", name)
	}
	words(w, ")")
	return nil
}
