package seatbelt

import (
	"strings"

	"github.com/kgate-dev/kgate/verify/sbpl"
)

func secretWorld() *sbpl.World {
	return sbpl.Tree(testProj+"/.env=env", testProj+"/a/b/secrets/key=key", testProj+"/open=open", testTemp+"/tmp/")
}

// homeAllowed is a person who allowed the whole home directory: what is denied
// stays denied, and kgate's own files too (opencompany#775).
func homeAllowed() []row {
	world := func() *sbpl.World {
		return sbpl.Tree(testHome+"/.ssh/id=id", testHome+"/.kgate/audit.jsonl=log", testHome+"/x=x", testTemp+"/tmp/")
	}
	secrets := []string{"id", "log"}
	rows := join(
		files("allowed", sbpl.Allow, everyFile, testHome+"/x", sbpl.Regular),
		denied("denied", everyFile, testHome+"/.ssh"),
		files("denied", sbpl.Deny, everyFile, testHome+"/.SSH/id", sbpl.Regular),
		denied("kgate's own", everyFile, testHome+"/.kgate"),
		files("kgate's own", sbpl.Deny, everyFile, testHome+"/.Kgate", sbpl.Directory),
		files("another repository", sbpl.Deny, writing, testHome+"/other/.git/hooks/post-commit", sbpl.Regular),
		files("another repository", sbpl.Deny, writing, testHome+"/other/.GIT", sbpl.Directory),
		files("another repository", sbpl.Deny, "file-write-unlink", testHome+"/other/.git/modules/a", sbpl.Directory),
		stays("home stays", testHome),
		files("home can be listed", sbpl.Allow, reading, testHome, sbpl.Directory),
		allowed("allowed", running, testHome),
		files("kgate's own, absent", sbpl.Deny, "file-write-create", testHome+"/.kgate", sbpl.Directory),
	)
	for _, f := range homeFiles {
		rows = append(rows, denied("a way out: "+f.why, writing, testHome+"/"+f.name)...)
	}
	for _, d := range []string{".config", ".local", ".local/share", "Library"} {
		rows = append(rows, stays("a way out", testHome+"/"+d)...)
	}
	rows = append(rows, denied("direnv runs it", writing, testHome+"/.envrc")...)
	rows = append(rows, noRepository(testHome)...)
	rows = append(rows, denied("the editor runs it", writing, testHome+"/.vscode")...)
	for _, step := range []string{"mv " + testHome + "/.ssh " + testProj + "/x", "mv " + testHome + "/.kgate " + testHome + "/k",
		"ln " + testHome + "/.kgate/audit.jsonl " + testHome + "/k", "mv " + testHome + " " + testTemp + "/tmp/h"} {
		rows = append(rows, untouched("opencompany#775", world, secrets, step))
	}
	return rows
}

// grantedRest is what stays protected when the repository is granted by name.
func grantedRest() []row {
	var rows []row
	for _, r := range inProject(testProj) {
		name := strings.TrimPrefix(r.q.Path, testProj+"/")
		if strings.HasPrefix(name, ".git/") || name == ".git" || strings.HasPrefix(name, ".GIT") {
			continue
		}
		rows = append(rows, r)
	}
	return rows
}

// belowRoot asks for every tool's file in the working directory.
func belowRoot() []row {
	var rows []row
	for _, f := range toolFiles {
		rows = append(rows, denied("tools of the working directory", writing, testProj+"/web/"+f.name)...)
		rows = append(rows, files("tools of the working directory", sbpl.Deny, writing, testProj+"/WEB/"+f.name, sbpl.Regular)...)
	}
	return append(rows, stays("the working directory stays", testProj+"/web")...)
}

// deniedProgram are rows for one file that may not be executed or copied, under
// its own name, also without regular expressions, and under another case of it.
func deniedProgram(what, file, more string) []row {
	ops := "process-exec process-exec-interpreter file-map-executable file-read-data " + more
	rows := files(what, sbpl.Deny, ops, file, sbpl.Regular)
	for _, r := range files(what, sbpl.Deny, ops, file, sbpl.Regular) {
		r.q.NoRegex = true
		rows = append(rows, r)
	}
	return append(rows, files(what, sbpl.Deny, ops, strings.ToUpper(file), sbpl.Regular)...)
}
