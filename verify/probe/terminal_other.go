//go:build !linux

package probe

import (
	"context"
	"errors"
	"io"
)

var errNotHere = errors.New("not on this system")

func terminal(context.Context, []string, io.Writer) error { return errNotHere }

func terminalShell([]string) error { return errNotHere }

func swap(context.Context, string, string, string, io.Writer) error { return errNotHere }
