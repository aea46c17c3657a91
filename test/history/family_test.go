package history

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// An answer is a use and its output.
type answer struct {
	in  Use
	out string
}

// inOrder returns the operations of one client. Operations without an answer may take effect later.
func inOrder(answers []answer) (ops []porcupine.Operation) {
	for i, a := range answers {
		op := porcupine.Operation{ClientId: i, Input: a.in, Output: a.out, Call: int64(2 * i), Return: int64(2*i + 1)}
		if a.out == Unknown {
			op.Return = 1 << 60
		}
		ops = append(ops, op)
	}
	return ops
}

// TestWrongHistories shows that the model rejects wrong histories. Otherwise the tests that use it
// could not fail.
func TestWrongHistories(t *testing.T) {
	code := Use{}
	for name, answers := range map[string][]answer{
		"a code returns two tokens":          {{code, "a"}, {code, "b"}},
		"a refresh token returns two tokens": {{code, "a"}, {Use{"a"}, "b"}, {Use{"a"}, "c"}},
		"a valid token is refused":           {{code, "a"}, {Use{"a"}, ""}},
		"an older token is accepted":         {{code, "a"}, {Use{"a"}, "b"}, {Use{"b"}, "c"}, {Use{"a"}, "c"}},
		"a family survives the use of an older token": {{code, "a"}, {Use{"a"}, "b"}, {Use{"b"}, "c"}, {Use{"a"}, ""},
			{Use{"c"}, "d"}},
		"a family survives a second use of its code":  {{code, "a"}, {code, ""}, {Use{"a"}, "b"}},
		"a used token is refused in the grace period": {{code, "a"}, {Use{"a"}, "b"}, {Use{"a"}, ""}},
		"a code is redeemed after a lost redemption":  {{code, Unknown}, {code, "a"}, {code, "b"}},
		"a lost refresh is answered twice": {{code, "a"}, {Use{"a"}, Unknown}, {Use{"a"}, "b"},
			{Use{"a"}, "c"}},
		"a token is lost with an unrelated answer": {{code, "a"}, {Use{"a"}, "b"}, {Use{"a"}, Unknown},
			{Use{"b"}, ""}},
	} {
		if porcupine.CheckOperations(Model{Graceful: true, Lossy: true}.model(), inOrder(answers)) {
			t.Errorf("%s: the model accepts the history", name)
		}
	}
}

// TestRightHistories shows that the model accepts everything that may happen when answers are lost.
func TestRightHistories(t *testing.T) {
	code := Use{}
	for name, answers := range map[string][]answer{
		"a lost redemption":                       {{code, Unknown}, {code, ""}, {code, ""}},
		"a redemption that had no effect":         {{code, Unknown}, {code, "a"}, {Use{"a"}, "b"}},
		"a lost refresh is repeated":              {{code, "a"}, {Use{"a"}, Unknown}, {Use{"a"}, "b"}, {Use{"b"}, "c"}},
		"a code that the session store has lost":  {{code, ""}, {code, ""}},
		"a code that the session store had again": {{code, ""}, {code, "a"}},
	} {
		if !porcupine.CheckOperations(Model{Graceful: true, Lossy: true}.model(), inOrder(answers)) {
			t.Errorf("%s: the model rejects the history", name)
		}
	}

	if porcupine.CheckOperations(Model{}.model(), inOrder([]answer{{code, ""}})) {
		t.Error("a session store that loses nothing may refuse a code")
	}
}
