package history

import (
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// inOrder parses uses that follow one another, such as "code=a a=unknown". The left side of a use
// is what was used, the code or a token. The right side is the output. A use with the output
// "unknown" does not end, because it may take effect later.
func inOrder(uses string) (ops []porcupine.Operation) {
	for i, use := range strings.Fields(uses) {
		token, out, _ := strings.Cut(use, "=")
		if token == "code" {
			token = ""
		}
		switch out {
		case "refused":
			out = Refused
		case "unknown":
			out = Unknown
		}

		op := porcupine.Operation{
			ClientId: i,
			Input:    Use{Token: token},
			Output:   out,
			Call:     int64(2 * i),
			Return:   int64(2*i + 1),
		}
		if out == Unknown {
			op.Return = 1 << 60
		}
		ops = append(ops, op)
	}
	return ops
}

// TestWrongHistories shows that the model rejects wrong histories. Otherwise, the tests that use
// the model could not fail.
func TestWrongHistories(t *testing.T) {
	for name, uses := range map[string]string{
		"a code returns two tokens":                   "code=a code=b",
		"a refresh token returns two tokens":          "code=a a=b a=c",
		"a valid token is refused":                    "code=a a=refused",
		"an older token is accepted":                  "code=a a=b b=c a=c",
		"a family survives the use of an older token": "code=a a=b b=c a=refused c=d",
		"a family survives a second use of its code":  "code=a code=refused a=b",
		"a used token is refused in the grace period": "code=a a=b a=refused",
		"a code is redeemed after a lost redemption":  "code=unknown code=a code=b",
		"a lost refresh is answered twice":            "code=a a=unknown a=b a=c",
		"a token is lost with an unrelated answer":    "code=a a=b a=unknown b=refused",
	} {
		if porcupine.CheckOperations(Model{Graceful: true, Lossy: true}.model(), inOrder(uses)) {
			t.Errorf("%s: the model accepted the history %s, want it rejected", name, uses)
		}
	}
}

// TestRightHistories shows that the model accepts what may happen when answers or sessions are
// lost.
func TestRightHistories(t *testing.T) {
	for name, uses := range map[string]string{
		"a lost redemption":                       "code=unknown code=refused code=refused",
		"a redemption that had no effect":         "code=unknown code=a a=b",
		"a lost refresh is repeated":              "code=a a=unknown a=b b=c",
		"a code that the session store has lost":  "code=refused code=refused",
		"a code that the session store has found": "code=refused code=a",
	} {
		if !porcupine.CheckOperations(Model{Graceful: true, Lossy: true}.model(), inOrder(uses)) {
			t.Errorf("%s: the model rejected the history %s, want it accepted", name, uses)
		}
	}

	if porcupine.CheckOperations(Model{}.model(), inOrder("code=refused")) {
		t.Error("the model for a session store that loses nothing accepted a refused code")
	}
}
