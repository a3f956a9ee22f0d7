//go:build !linux

package probe

import (
	"context"
	"errors"
	"io"
)

func attackTable() map[string]attack { return nil }

func own([]string) error { return errors.New("there are no namespaces on this system") }

func send(context.Context, []string, io.Writer) error {
	return errors.New("there are no boxes' networks on this system")
}

func plant(string) error { return errors.New("there are no kernel keyrings on this system") }

func ownInner([]string) error { return errUsage }

func still() error { return errUsage }

func giveFile(string, string, io.Writer) error {
	return errors.New("giving files is for the attacks on boxes of Linux")
}

func hand([]string) error { return errUsage }
