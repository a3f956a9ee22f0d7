// Package sbpl reads the language of Seatbelt profiles and answers what a
// profile allows. It is a witness: it shares no code with what writes profiles.
//
// It knows three answers. Besides allow and deny there is unknown, for whatever
// has not been measured on a Mac; a test that gets unknown has not passed.
// Likewise a profile is either read, or refused because Apple's compiler
// refuses it ([RefusedError]), or not understood ([NotUnderstoodError]).
//
// The rules of precedence were measured by others on macOS 14 to 26:
//
//   - Within one operation the last filtered rule that matches decides.
//   - A rule without a filter never overrides one with a filter, whichever
//     comes first in the file.
//   - A rule for a more specific operation beats one for a wildcard:
//     (deny file-read-data X) survives a later (allow file-read* X)
//     (nolabs-ai/nono#697).
//   - Paths are compared as the kernel resolves them: /private/tmp matches
//     what was opened as /tmp, a rule for /tmp never matches anything but the
//     link itself (nolabs-ai/nono#393).
//   - A network address takes only * or localhost as its host.
package sbpl
