//go:build linux && !amd64

package probe

import "errors"

func foreignCall() error { return errors.New("this processor has no i386 calls") }
