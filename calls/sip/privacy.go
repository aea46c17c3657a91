package sip

import (
	"strings"

	"github.com/emiago/sipgo/sip"

	"github.com/selvage/selvage/calls"
)

// anonymous is how a caller appears who withholds the number, or whose number is unknown.
var anonymous = calls.Party{Address: "anonymous", Name: "Anonymous"}

// withholdsCaller reports whether a request asks to hide the caller from the called party (RFC 3323,
// section 4.2, and RFC 3325, section 9.3).
func withholdsCaller(r *sip.Request) bool {
	for _, h := range r.GetHeaders("privacy") {
		isSeparator := func(c rune) bool { return strings.ContainsRune(";, \t", c) }
		for value := range strings.FieldsFuncSeq(strings.ToLower(h.Value()), isSeparator) {
			if value == "id" || value == "user" || value == "header" {
				return true
			}
		}
	}
	return false
}
