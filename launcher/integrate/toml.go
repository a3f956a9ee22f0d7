package integrate

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/pelletier/go-toml/v2"
)

// appendTOML adds a block at the end of a TOML text. Tables that are added so
// change nothing above them; check compares what is read before and after.
func appendTOML(text []byte, block string, check func(before, after map[string]any) error) (Splice, error) {
	var before, after map[string]any
	if err := toml.Unmarshal(text, &before); err != nil {
		return Splice{}, fmt.Errorf("is no TOML (%w): mend it first", err)
	}
	gap := ""
	if len(bytes.TrimSpace(text)) > 0 {
		gap = "\n"
		if !bytes.HasSuffix(text, []byte("\n")) {
			gap = "\n\n"
		}
	}
	s := Splice{At: len(text), New: ends(text, gap+block)}
	byHand := errors.New("cannot be edited without changing something else (a table is written in one line, perhaps): write this into it by hand:\n" + block)
	if err := toml.Unmarshal(s.apply(text), &after); err != nil {
		return Splice{}, byHand
	}
	if check(before, after) != nil {
		return Splice{}, byHand
	}
	return s, nil
}

// sameBut compares two documents but for one key on the first level.
func sameBut(before, after map[string]any, key string) error {
	for _, doc := range []map[string]any{before, after} {
		for k := range doc {
			if k != key && !reflect.DeepEqual(before[k], after[k]) {
				return fmt.Errorf("%s changed", k)
			}
		}
	}
	return nil
}
