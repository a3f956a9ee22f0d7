//go:build !linux

package command

import (
	"syscall"
	"testing"
)

func offline(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	t.Skip("only Linux gives a process a network of its own")
	return nil
}
