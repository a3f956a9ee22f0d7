// Harness drives agent harnesses as people use them, each with kgate between it
// and its shell, against a stand-in for its model's API, and writes what came of
// it into docs/harnesses.md.
//
//	go run ./ci/harness [-claude] [-only NAME,...] [-keep] [-o docs/harnesses.md]
//
// It installs pinned versions of Codex, opencode and Gemini CLI with npm, from
// wherever npm's own configuration says, into a cache outside the repository
// (harness below $KGATE_CI_CACHE; /var/cache/kgate-ci for root, kgate-ci in the
// user's cache directory otherwise; together about 900 MB). With -claude Claude
// Code is installed and driven as well, which is not free software. No harness's
// install scripts are run.
//
// The page is made from the last run of each harness, which is kept in that
// directory too, so that -only runs one of them again.
//
// Everything else happens as an ordinary user: the present one, or kgate-test
// when that is root. Each run has a home and a project of its own and a network
// namespace with a loopback interface and nothing else, in which the stand-in
// listens; the cases about the network run on the machine of package lab. For
// every harness there is a control run without kgate, in which the denied
// program does start and the secret does reach the stand-in.
//
// What is missing of npm, git, bwrap, slirp4netns and iptables is installed by
// ci/packages first, so that as root it needs Go alone. Of aider and VS Code, which
// are not driven, the settings are taken there and back.
package main
