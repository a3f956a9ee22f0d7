//go:build !linux

package probe

import "io"

func calls([]string, io.Writer) error { return errUsage }
