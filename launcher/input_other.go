//go:build !linux

package launcher

import "os"

// input is a standard input that is poured into a pipe: nowhere but on Linux, as a
// descriptor that is opened anew has no more rights elsewhere.
type input struct{ r *os.File }

func pour(*os.File) (*input, error) { return nil, nil }

func (*input) stop() error { return nil }
