package scripts

import "embed"

// Files holds every scenario, NAME.txtar, so that the same text is run by go
// test and by kgate verify on a machine that has no source tree.
//
//go:embed *.txtar
var Files embed.FS
