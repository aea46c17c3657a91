package nodes

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/selvage/selvage/test/harness"
)

const (
	crowd  = 64
	rounds = 4
	grace  = 10 * time.Second // how long a used refresh token still returns its successor
)

// A use presents a refresh token, or the code if token is empty. Its output is the refresh token of
// the answer, or "" for a refusal.
type use struct{ token string }

// A family is the model's state of a login: its code and its last two refresh tokens.
type family struct {
	redeemed, dead    bool
	previous, current string
}

// step reports whether a use may have the output out, and returns the state after it. graceful
// means that no grace period can have ended yet.
func (f family) step(in use, out string, graceful bool) (bool, family) {
	switch {
	case in.token == "" && !f.redeemed:
		return out != "", family{redeemed: true, current: out}
	case f.dead || in.token == "": // a second use of the code ends the family
		return out == "", family{redeemed: true, dead: true}
	case in.token == f.current:
		return out != "" && out != f.current, family{redeemed: true, previous: f.current, current: out}
	case in.token == f.previous && out != "":
		return out == f.current, f
	}
	return out == "" && (in.token != f.previous || !graceful), family{redeemed: true, dead: true}
}

func familyModel(graceful bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return family{} },
		Step: func(state, in, out any) (bool, any) {
			ok, next := state.(family).step(in.(use), out.(string), graceful)
			return ok, next
		},
	}
}

// TestFamilyModel shows that the model rejects wrong histories. Otherwise the tests below could
// not fail.
func TestFamilyModel(t *testing.T) {
	rows(t)
	code := use{}
	tests := map[string][]struct {
		in  use
		out string
	}{
		"a code returns two tokens":          {{code, "a"}, {code, "b"}},
		"a refresh token returns two tokens": {{code, "a"}, {use{"a"}, "b"}, {use{"a"}, "c"}},
		"a valid token is refused":           {{code, "a"}, {use{"a"}, ""}},
		"an older token is accepted":         {{code, "a"}, {use{"a"}, "b"}, {use{"b"}, "c"}, {use{"a"}, "c"}},
		"a family survives the use of an older token": {{code, "a"}, {use{"a"}, "b"}, {use{"b"}, "c"}, {use{"a"}, ""},
			{use{"c"}, "d"}},
		"a family survives a second use of its code":  {{code, "a"}, {code, ""}, {use{"a"}, "b"}},
		"a used token is refused in the grace period": {{code, "a"}, {use{"a"}, "b"}, {use{"a"}, ""}},
	}

	for name, uses := range tests {
		var history []porcupine.Operation
		for i, u := range uses {
			history = append(history, porcupine.Operation{Input: u.in, Output: u.out, Call: int64(2 * i),
				Return: int64(2*i + 1)})
		}
		if porcupine.CheckOperations(familyModel(true), history) {
			t.Errorf("%s: the model allows it", name)
		}
	}
}

// A history records the requests to two nodes about one login, and their responses.
type history struct {
	t     *testing.T
	began time.Time

	mu  sync.Mutex
	all []porcupine.Operation
}

// ask runs a use, records it and returns its output.
func (h *history) ask(client int, in use, do func() (harness.Tokens, error)) string {
	call := time.Since(h.began)
	var tokens harness.Tokens
	var err error
	harness.Patiently(func() (int, error) {
		tokens, err = do()
		return 0, err
	})
	done := time.Since(h.began)

	var r *harness.Refusal
	if err != nil && (!errors.As(err, &r) || r.Code != "invalid_grant") {
		h.t.Errorf("a use of %+v: %v", in, err)
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, porcupine.Operation{ClientId: client, Input: in, Output: tokens.RefreshToken,
		Call: int64(call), Return: int64(done)})
	return tokens.RefreshToken
}

// check fails unless some order of the uses explains all answers.
func (h *history) check(what string) {
	h.t.Helper()
	graceful, few := time.Since(h.began) < grace, merged(h.all)
	if got := porcupine.CheckOperationsTimeout(familyModel(graceful), few, time.Minute); got != porcupine.Ok {
		h.t.Errorf("%s: no order of the uses explains %d answers of two nodes (%s): %+v", what,
			len(h.all), got, few)
	}
}

// merged returns at most two operations for each input and output, because more of them add
// nothing. The first operation ends when the first of the merged operations has ended. The last
// begins when all have begun. The others fit in between.
func merged(all []porcupine.Operation) (few []porcupine.Operation) {
	type same struct{ in, out any }
	first, last := map[same]porcupine.Operation{}, map[same]porcupine.Operation{}

	for _, op := range all {
		key := same{op.Input, op.Output}
		f, seen := first[key]
		if !seen {
			first[key] = op
			continue
		}
		l, twice := last[key]
		if !twice {
			l = f
		}
		f.Call, f.Return = min(f.Call, op.Call), min(f.Return, op.Return)
		l.Call, l.Return = max(l.Call, op.Call), max(l.Return, op.Return)
		first[key], last[key] = f, l
	}

	for key, op := range first {
		op.ClientId = len(few) // one client each, since they overlap
		few = append(few, op)
		if l, twice := last[key]; twice {
			l.ClientId = len(few)
			few = append(few, l)
		}
	}
	return few
}

// TestLinearRedemptions redeems one code many times at two nodes concurrently, and refreshes the
// result. The answers must be those of a single node that serves one request after the other.
func TestLinearRedemptions(t *testing.T) {
	p, c, cookies := linear(t)
	for range rounds {
		f := c.NewFlow("openid offline_access")
		code, err := f.QuickCode(cookies)
		if err != nil {
			t.Fatal(err)
		}
		h := &history{t: t, began: time.Now()}
		harness.AtOnce(crowd, func(i int) {
			if got := h.ask(i, use{}, func() (harness.Tokens, error) { return f.QuickRedeem(code) }); got != "" {
				h.ask(i, use{got}, func() (harness.Tokens, error) { return c.QuickRefresh(got) })
			}
		})
		h.check("a code of project " + p.ID)
	}
}

// TestLinearRefreshes refreshes one login many times at two nodes concurrently, mostly with the
// newest known token.
func TestLinearRefreshes(t *testing.T) {
	p, c, cookies := linear(t)
	for range rounds {
		f := c.NewFlow("openid offline_access")
		code, err := f.QuickCode(cookies)
		if err != nil {
			t.Fatal(err)
		}
		h := &history{t: t, began: time.Now()}
		var mu sync.Mutex
		known := []string{h.ask(crowd, use{}, func() (harness.Tokens, error) { return f.QuickRedeem(code) })}

		harness.AtOnce(crowd, func(i int) {
			for range 3 {
				mu.Lock()
				token := known[max(0, len(known)-1-int(rand.ExpFloat64()))]
				mu.Unlock()
				got := h.ask(i, use{token}, func() (harness.Tokens, error) { return c.QuickRefresh(token) })
				mu.Lock()
				if got != "" && got != known[len(known)-1] {
					known = append(known, got)
				}
				mu.Unlock()
			}
		})
		h.check("a login of project " + p.ID)
	}
}

// linear returns a project at two nodes, a client, and the cookies of a browser that is signed in.
func linear(t *testing.T) (*harness.Project, *harness.Client, harness.Option) {
	t.Helper()
	p := two(t).NewProject(t)
	c := p.NewClient(t, "spa", "--first-party", "--id-token-alg", "ES256", "--access-token", "fabric")
	_, b := c.SignIn(t, p.NewSubscriber(t), "openid offline_access")
	return p, c, b.Cookies()
}
