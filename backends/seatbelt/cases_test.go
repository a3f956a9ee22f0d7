package seatbelt

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/kgate-dev/kgate/launcher/policy"
	"github.com/kgate-dev/kgate/verify/sbpl"
)

// inProject are the questions about a project with nothing special in it: it
// works, and what a person's tools would run out of it cannot be written, under
// any case of its name and by any order of renames.
func inProject(p string) []row {
	var rows []row
	add := func(more ...row) { rows = append(rows, more...) }
	reg, dir := sbpl.Regular, sbpl.Directory
	add(files("the project", sbpl.Allow, everyFile, p+"/src/main.go", reg)...)
	add(files("the project", sbpl.Allow, everyFile, p+"/build", dir)...)
	add(files("the project's own directory", sbpl.Allow, reading+" file-write-times", p, dir)...)
	for d := path.Dir(p); d != "/"; d = path.Dir(d) {
		add(files("getcwd", sbpl.Allow, looking, d, dir)...)
	}
	add(files("git add, git commit", sbpl.Allow, everyFile, p+"/.git/index.lock", reg)...)
	add(files("git commit", sbpl.Allow, everyFile, p+"/.git/objects/ab/cd", reg)...)
	add(files("git status", sbpl.Allow, reading, p+"/.git/config", reg)...)
	add(files("git branch config", sbpl.Allow, writing, p+"/.git/refs/heads/config", reg)...)
	add(files("git commit in a submodule", sbpl.Allow, writing, p+"/.git/modules/m/index", reg)...)

	add(stays("the project itself stays", p)...)
	for _, f := range toolFiles {
		add(denied("a way out: "+f.why, writing, p+"/"+f.name)...)
		add(files("a way out: "+f.why, sbpl.Deny, writing, p+"/"+strings.ToUpper(f.name), reg)...)
		add(files("a way out: "+f.why, sbpl.Deny, writing, p+"/"+strings.ToUpper(f.name)+"/x", reg)...)
		add(files("readable: "+f.name, sbpl.Allow, reading, p+"/"+f.name, reg)...)
	}
	add(noRepository(p)...)
	for _, name := range []string{".git/hooks/pre-commit", ".git/config", ".git/config.worktree", ".git/modules/a/b/hooks/post-checkout",
		".git/modules/a/config", ".git/worktrees/w/config.worktree", ".git/worktrees/w/commondir", "vendor/x/.git/hooks/pre-push", "vendor/x/.git/config"} {
		add(files("a way out: git", sbpl.Deny, writing, p+"/"+name, reg)...)
		add(files("a way out: git", sbpl.Deny, writing, p+"/"+strings.ToUpper(name), reg)...)
	}
	for _, name := range []string{".git", ".GIT", "sub/.git", ".git/hooks"} {
		add(files("a repository", sbpl.Deny, writing, p+"/"+name, dir)...)
	}
	add(files("the repository of a submodule", sbpl.Deny, "file-write-unlink", p+"/.git/modules/m", dir)...)
	add(files("the repository of a submodule", sbpl.Deny, "file-write-unlink", p+"/sub/.git/modules/m", dir)...)
	add(files("the repository of a worktree", sbpl.Deny, "file-write-unlink", p+"/.git/worktrees/w", dir)...)
	return rows
}

// noRepository asks whether a directory can be made a repository itself.
func noRepository(dir string) []row {
	rows := denied("as a repository", writing, dir+"/HEAD")
	for _, name := range []string{"/head", "/head/x"} {
		rows = append(rows, files("as a repository", sbpl.Deny, writing, dir+name, sbpl.Regular)...)
	}
	return rows
}

// untouched acts in a world and wants the secrets not to leak, whatever of the
// steps was allowed. A step is "mv A B", "ln A B" or "ln -s A B".
func untouched(what string, world func() *sbpl.World, secrets []string, steps ...string) row {
	return row{what: what, ask: func(p *sbpl.Profile) string {
		for _, typed := range []bool{false, true} {
			w := world()
			w.FoldCase, w.AsTyped = true, typed
			for _, s := range steps {
				var a sbpl.Answer
				f := strings.Fields(s)
				switch {
				case f[0] == "mv":
					a = w.Rename(p, f[1], f[2])
				case f[1] == "-s":
					a = w.Symlink(p, f[2], f[3])
				default:
					a = w.Link(p, f[1], f[2])
				}
				if a.Verdict == sbpl.Unknown {
					return s + ": " + a.String()
				}
			}
			leaks := w.Leaks(p)
			for _, s := range secrets {
				if slices.Contains(leaks, s) {
					return strings.Join(steps, "; ") + ": " + s + " leaks"
				}
			}
		}
		return ""
	}}
}

type testCase struct {
	name   string
	facts  Facts
	policy *policy.Policy
	rows   []row
}

func join(lists ...[]row) []row { return slices.Concat(lists...) }

// testCases are the policies of the golden profiles, each with the questions
// that its plain reading answers.
func testCases() []testCase {
	reg, dir := sbpl.Regular, sbpl.Directory
	off := addresses(sbpl.Deny)
	inProj := inProject(testProj)
	look := func(names ...string) []row {
		var rows []row
		for _, n := range names {
			rows = append(rows, files("on the way", sbpl.Allow, looking, n, dir)...)
		}
		return rows
	}
	return []testCase{
		{"off", mac(nil), base(), join(off, inProj)},
		{"open", mac(nil), base(network(policy.Open)), join(addresses(sbpl.Allow), inProj)},
		{"restricted-empty", mac(nil), base(network(policy.Restricted)), join(off, inProj)},
		{"allowed-paths", mac(nil), base(allow(testHome+"/.gitconfig", testHome+"/.cache/go-build:rw", testHome+"/sdk/go")), join(off, inProj,
			allowed("git", running, testHome+"/.gitconfig"),
			allowed("go", running, testHome+"/sdk/go"),
			files("git config --global", sbpl.Deny, writing, testHome+"/.gitconfig", reg),
			files("go build", sbpl.Allow, everyFile, testHome+"/.cache/go-build/ab/x", reg),
			files("a file could stand there", sbpl.Allow, running+" file-write-data", testHome+"/.cache/go-build", reg),
			files("go", sbpl.Allow, running, testHome+"/sdk/go/bin/go", reg),
			files("go", sbpl.Deny, writing, testHome+"/sdk/go/bin/go", reg),
			files("the home directory", sbpl.Deny, everyFile, testHome+"/.gitconfig2", reg),
			files("no repository is planted in what is writable", sbpl.Deny, writing, testHome+"/.cache/go-build/.git/config", reg),
			files("no repository is planted in what is writable", sbpl.Deny, writing, testHome+"/.cache/go-build/a/.git", dir),
			files("no repository is planted in what is writable", sbpl.Deny, "file-write-unlink", testHome+"/.cache/go-build/a/.GIT", dir),
			files("no repository is planted in what is writable", sbpl.Deny, "file-write-unlink", testHome+"/.cache/go-build/.git/modules/x", dir),
			stays("no repository is planted in what is writable", testHome+"/.cache/go-build"),
			denied("direnv runs it", writing, testHome+"/.cache/go-build/.envrc"),
			noRepository(testHome+"/.cache/go-build"),
			denied("the editor runs it", writing, testHome+"/.cache/go-build/.vscode"),
			look(testHome+"/.cache", testHome+"/sdk"),
		)},
		{"nested-trees", mac(nil), base(allow(testProj+"/vendor", testProj+"/vendor/cache:rw")), join(off, inProj,
			files("read-only within", sbpl.Allow, running, testProj+"/vendor/lib.c", reg),
			denied("read-only within", writing, testProj+"/vendor"),
			files("read-only within", sbpl.Deny, writing, testProj+"/VENDOR/lib.c", reg),
			allowed("writable within that", everyFile, testProj+"/vendor/cache"),
			files("its name is not a prefix", sbpl.Allow, everyFile, testProj+"/vendors", reg),
		)},
		{"denied-reads", mac(nil), base(denyRead(testProj+"/.env", testProj+"/a/b/secrets", testHome+"/.ssh")), join(off, inProj,
			denied("denied", everyFile, testProj+"/.env"),
			files("denied", sbpl.Deny, everyFile, testProj+"/.ENV", reg),
			denied("denied", everyFile, testProj+"/a/b/secrets"),
			stays("above", testProj+"/a/b"),
			stays("above", testProj+"/a"),
			files("denied", sbpl.Deny, everyFile, testProj+"/A/b/Secrets/KEY", reg),
			files("its neighbour", sbpl.Allow, everyFile, testProj+"/.env.example", reg),
			files("its parent can be listed", sbpl.Allow, reading, testProj+"/a/b", dir),
			files("hidden with the home directory", sbpl.Deny, everyFile, testHome+"/.ssh/id", reg),
			[]row{
				untouched("sandbox-runtime#8", secretWorld, []string{"env", "key"}, "mv "+testProj+"/.env "+testProj+"/x"),
				untouched("sandbox-runtime#8", secretWorld, []string{"env", "key"}, "mv "+testProj+"/a/b/secrets "+testProj+"/x"),
				untouched("sandbox-runtime#8", secretWorld, []string{"env", "key"}, "mv "+testProj+"/a/b "+testProj+"/x"),
				untouched("sandbox-runtime#8", secretWorld, []string{"env", "key"}, "mv "+testProj+"/a "+testProj+"/x"),
				untouched("sandbox-runtime#8", secretWorld, []string{"env", "key"}, "mv "+testProj+"/A/B "+testProj+"/x"),
				untouched("sandbox-runtime#8", secretWorld, []string{"env", "key"}, "mv "+testProj+"/A "+testProj+"/x"),
				untouched("sandbox-runtime#8", secretWorld, []string{"env", "key"}, "mv "+testProj+" "+testTemp+"/tmp/x"),
				untouched("landstrip#90", secretWorld, []string{"env", "key"}, "ln "+testProj+"/.env "+testProj+"/x"),
				untouched("sbe PR#4", secretWorld, []string{"env", "key"}, "ln -s "+testProj+"/.env "+testProj+"/x"),
				{what: "sbe PR#4", ask: func(p *sbpl.Profile) string {
					w := secretWorld()
					w.Symlink(p, "a/b/secrets", testProj+"/l")
					if a := w.Do(p, "file-read-data", testProj+"/l/key"); a.Verdict != sbpl.Deny {
						return "through a symlink: " + a.String()
					}
					return ""
				}},
			},
		)},
		{"denied-below-links", mac(map[string]string{testProj + "/l": "real", testProj + "/.env": "real/env", testHome + "/work": "/Users/u/disk/work"}),
			base(denyRead(testProj+"/l/key", testProj+"/.env", "/tmp/data/key"), allow("/tmp/data:rw", testHome+"/work/lib")), join(off, inProj,
				denied("nono#393: the real path", everyFile, testProj+"/real/key"),
				denied("the link's target", everyFile, testProj+"/real/env"),
				denied("the link itself", everyFile, testProj+"/.env"),
				files("its neighbour", sbpl.Allow, everyFile, testProj+"/real/x", reg),
				denied("below /tmp", everyFile, "/private/tmp/data/key"),
				files("below /tmp", sbpl.Deny, everyFile, "/private/tmp/DATA/key", reg),
				files("below /tmp", sbpl.Allow, everyFile, "/private/tmp/data/x", reg),
				allowed("below /tmp", running, "/private/tmp/data"),
				allowed("through a link", running, "/Users/u/disk/work/lib"),
				files("the link is passed", sbpl.Allow, looking, testHome+"/work", sbpl.Symlink),
				files("through a link", sbpl.Allow, running, "/Users/u/disk/work/lib/x", reg),
				look("/Users/u/disk", "/Users/u/disk/work"),
				stays("planted", "/private/tmp/data"),
				files("planted", sbpl.Deny, writing, "/private/tmp/data/.git", dir),
				denied("planted", writing, "/private/tmp/data/.envrc"),
				noRepository("/private/tmp/data"),
				denied("planted", writing, "/private/tmp/data/.vscode"),
				files("planted", sbpl.Deny, writing, "/private/tmp/data/.git/config", reg),
				files("planted", sbpl.Deny, "file-write-unlink", "/private/tmp/data/a/.git", dir),
				files("planted", sbpl.Deny, "file-write-unlink", "/private/tmp/data/.git/worktrees/w", dir),
				stays("above", testProj+"/real"),
				[]row{{what: "both spellings of /tmp", ask: func(p *sbpl.Profile) string {
					w := sbpl.Tree("/private/tmp/data/key=k", "/private/tmp/data/x=x")
					for _, spelled := range []string{"/tmp/data/", "/private/tmp/data/", "/System/Volumes/Data/private/tmp/data/"} {
						if a := w.Do(p, "file-read-data", spelled+"key"); a.Verdict != sbpl.Deny {
							return spelled + "key: " + a.String()
						}
						if a := w.Do(p, "file-read-data", spelled+"x"); a.Verdict != sbpl.Allow {
							return spelled + "x: " + a.String()
						}
					}
					return ""
				}}},
			)},
		{"broad-deny-specific-allow", mac(nil), base(denyRead(testHome+"/data"), allow(testHome+"/data/public", testHome+"/src")), join(off, inProj,
			files("clash#295: deny beats allow", sbpl.Deny, everyFile, testHome+"/data/public/x", reg),
			files("clash#295: deny beats allow", sbpl.Deny, everyFile, testHome+"/data/x", reg),
			files("clash#295: not even the directory", sbpl.Deny, looking, testHome+"/data", dir),
			allowed("allowed", running, testHome+"/src"),
		)},
		{"denied-programs", mac(nil, "/Library/Developer/CommandLineTools/usr/bin/python3"),
			base(denyExec("/usr/bin/curl", "/opt/homebrew/Cellar/wget/1.25/bin/wget", testProj+"/tools/nc", "/usr/bin/python3")), join(off, inProj,
				deniedProgram("denied", "/usr/bin/curl", ""),
				deniedProgram("denied", "/opt/homebrew/Cellar/wget/1.25/bin/wget", ""),
				deniedProgram("denied", testProj+"/tools/nc", writing),
				deniedProgram("the file behind the shim", "/Library/Developer/CommandLineTools/usr/bin/python3", ""),
				deniedProgram("the shim", "/usr/bin/python3", ""),
				files("its neighbour", sbpl.Allow, running, "/usr/bin/curl-config", reg),
				stays("the directory above stays", testProj+"/tools"),
				files("the file can be looked at", sbpl.Allow, looking, "/usr/bin/curl", reg),
			)},
		{"home-allowed", mac(nil), base(allow(testHome+":rw"), denyRead(testHome+"/.ssh")), join(off, inProj,
			homeAllowed(),
		)},
		{"odd-names", mac(nil), base(project(`/Users/u/my "pro\ject" (1)`), denyRead(`/Users/u/my "pro\ject" (1)/[se]cret+.txt`, "/Users/u/my \"pro\\ject\" (1)/caf\u00e9/key")),
			join(off, inProject(`/Users/u/my "pro\ject" (1)`),
				denied("denied", everyFile, `/Users/u/my "pro\ject" (1)/[se]cret+.txt`),
				files("denied", sbpl.Deny, everyFile, `/Users/u/my "pro\ject" (1)/[SE]CRET+.txt`, reg),
				files("no pattern", sbpl.Allow, everyFile, `/Users/u/my "pro\ject" (1)/scret.txt`, reg),
				denied("denied, composed", everyFile, "/Users/u/my \"pro\\ject\" (1)/caf\u00e9/key"),
				files("denied, decomposed", sbpl.Deny, everyFile, "/Users/u/my \"pro\\ject\" (1)/cafe\u0301/key", reg),
				files("denied, another case", sbpl.Deny, everyFile, "/Users/u/my \"pro\\ject\" (1)/CAF\u00c9/key", reg),
				stays("the directory above stays", "/Users/u/my \"pro\\ject\" (1)/caf\u00e9"),
				files("the directory above stays, decomposed", sbpl.Deny, "file-write-unlink", "/Users/u/my \"pro\\ject\" (1)/cafe\u0301", dir),
			)},
		{"project-in-tmp", mac(nil), base(project("/tmp/work/p")), join(off, inProject("/private/tmp/work/p"))},
		{"project-behind-link", mac(map[string]string{"/Users/u/code": "/Volumes/disk/code"}), base(project("/Users/u/code/p")), join(off, inProject("/Volumes/disk/code/p"),
			files("the link is passed", sbpl.Allow, looking, "/Users/u/code", sbpl.Symlink),
			look("/Users", "/Users/u"),
		)},
		{"granted-by-name", mac(nil), base(allow(testProj+"/.git:rw", testProj+"/.vscode/settings.json:rw")), join(off,
			allowed("granted", everyFile, testProj+"/.git"),
			files("granted", sbpl.Allow, everyFile, testProj+"/.git/hooks/pre-commit", reg),
			files("granted", sbpl.Allow, everyFile, testProj+"/.git/config", reg),
			files("granted", sbpl.Allow, "file-write-unlink", testProj+"/.git/modules/m", dir),
			allowed("granted", everyFile, testProj+"/.vscode/settings.json"),
			files("not granted", sbpl.Deny, writing, testProj+"/.vscode/tasks.json", reg),
			files("not granted", sbpl.Deny, writing, testProj+"/sub/.git/config", reg),
			grantedRest(),
		)},
		{"worktree", mac(nil), base(allow(testHome + "/repo/.git:rw")), join(off, inProj,
			files("git commit in a linked worktree", sbpl.Allow, everyFile, testHome+"/repo/.git/worktrees/w/index.lock", reg),
			files("git commit in a linked worktree", sbpl.Allow, running, testHome+"/repo/.git", reg),
			files("a way out", sbpl.Deny, writing, testHome+"/repo/.git/hooks/pre-commit", reg),
			files("a way out", sbpl.Deny, writing, testHome+"/repo/.git/config", reg),
			files("a way out", sbpl.Deny, writing, testHome+"/repo/.git/worktrees/w/commondir", reg),
			stays("the repository stays", testHome+"/repo/.git"),
			look(testHome+"/repo"),
		)},
		{"below-the-root", mac(nil), func() *policy.Policy {
			p := base()
			p.Dir = testProj + "/web"
			p.ProjectFiles = []string{testProj + "/.kgate.yaml", testProj + "/web/.kgate.yaml"}
			return p
		}(), join(off, inProj,
			files("tools of the working directory", sbpl.Deny, writing, testProj+"/web/.mcp.json", reg),
			files("all of them", sbpl.Deny, writing, testProj+"/web/.CLAUDE/settings.json", reg),
			belowRoot(),
		)},
		{"xcode", func() Facts {
			f := mac(nil)
			f.Developer = "/Applications/Xcode_26.app/Contents/Developer"
			f.Kgate = "/Users/u/go/bin/kgate"
			return f
		}(), base(), join(off, inProj,
			files("git", sbpl.Allow, running, "/Applications/Xcode_26.app/Contents/Developer/usr/bin/git", reg),
			files("xcodebuild", sbpl.Allow, running, "/Applications/Xcode_26.app/Contents/SharedFrameworks/DVT.framework/DVT", reg),
			files("xcodebuild", sbpl.Deny, writing, "/Applications/Xcode_26.app/Contents/x", reg),
			files("other applications", sbpl.Deny, everyFile, "/Applications/Mail.app/Contents/x", reg),
			files("the stage", sbpl.Allow, running, "/Users/u/go/bin/kgate", reg),
			files("its neighbours", sbpl.Deny, everyFile, "/Users/u/go/bin/other", reg),
			look("/Applications", "/Applications/Xcode_26.app", "/Users/u/go", "/Users/u/go/bin"),
		)},
		{"kgate-in-project", func() Facts {
			f := mac(nil)
			f.Kgate = testProj + "/bin/kgate"
			return f
		}(), base(), join(off, inProj,
			files("the stage", sbpl.Allow, running, testProj+"/bin/kgate", reg),
			denied("the next launch runs it", writing, testProj+"/bin/kgate"),
			files("the next launch runs it", sbpl.Deny, writing, testProj+"/BIN/kgate", reg),
			stays("and its directory", testProj+"/bin"),
		)},
		{"hooks-elsewhere", func() Facts {
			f := mac(nil)
			f.ReadFile = func(name string) ([]byte, error) {
				if name == testProj+"/.git/config" {
					return []byte("[core]\n\thooksPath = .husky/_\n[include]\n\tpath = ../team.gitconfig\n"), nil
				}
				return nil, errors.New("no such file")
			}
			return f
		}(), base(), join(off, inProj,
			denied("git runs it", writing, testProj+"/.husky/_"),
			stays("and above", testProj+"/.husky"),
			denied("git reads it", writing, testProj+"/team.gitconfig"),
		)},
		{"denied-system", mac(nil), base(denyRead("/etc/ssh", "/opt/homebrew", "/private/tmp", "/var/select", "/dev/zero")), join(off, inProj,
			denied("denied", reading, "/private/etc/ssh"),
			files("denied", sbpl.Deny, reading, "/PRIVATE/etc/ssh/x", reg),
			files("denied", sbpl.Deny, everyFile, "/opt/homebrew/Cellar/node/24.1.0/bin/node", reg),
			denied("denied", everyFile, "/opt/homebrew"),
			files("denied", sbpl.Deny, running, "/OPT/homebrew/x", reg),
			files("denied", sbpl.Deny, looking, "/private/tmp", dir),
			files("denied", sbpl.Deny, reading, "/private/var/select/sh", sbpl.Symlink),
			files("denied", sbpl.Deny, reading+" file-write-data file-ioctl", "/dev/zero", sbpl.Device),
		)},
	}
}
