package bubblewrap

import (
	"strings"
)

// quote writes a word so that sh reads it back as it is.
func quote(word string) string {
	plain := word != ""
	for i := 0; i < len(word); i++ {
		c := word[i]
		plain = plain && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-+:,@%", c) >= 0)
	}
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
