//go:build !linux

package audit

import "errors"

func mountSmall(string) error { return errors.ErrUnsupported }
