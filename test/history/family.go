// Package history records the requests of clients for a login and the answers, while nodes and
// databases fail. It then checks whether some order of the requests explains all answers.
//
// A login consists of a code, which may be redeemed once, and of the refresh tokens that result
// from it. A request without an answer may have taken effect at any time, or not at all.
package history

import "github.com/anishathalye/porcupine"

// A Use presents a refresh token or, if Token is empty, the code. Its output is the refresh token
// in the answer, Refused, or Unknown.
type Use struct{ Token string }

// A Use has one of these outputs if it returned no refresh token.
const (
	Refused = ""
	Unknown = "?" // the answer was lost, or was an error other than invalid_grant
)

// A Model describes what the server promises about logins.
type Model struct {
	Graceful bool // every used refresh token is still in its grace period
	Lossy    bool // the session store may lose codes that were not redeemed
}

// A family is the state of a login: whether its code was redeemed, whether it has ended, and its
// last two refresh tokens.
type family struct {
	redeemed, dead    bool
	previous, current string // current is Unknown if the answer that contained it was lost
}

// step returns the possible states after a use with this output. It returns nil if the use cannot
// have this output.
//
// If the output is Unknown, step assumes that the use took effect. A use without an effect needs no
// state of its own, because it can be ordered after all other uses (see History.Ask).
func (m Model) step(f family, in Use, out string) []family {
	if in.Token == "" {
		if f.redeemed {
			return end(out)
		}
		return m.redeem(f, out)
	}
	if f.dead {
		return end(out)
	}

	switch in.Token {
	case f.current:
		return f.refresh(out)
	case f.previous:
		return m.reuse(f, out)
	default: // an older token
		return end(out)
	}
}

// redeem returns the possible states after the first use of the code.
func (m Model) redeem(f family, out string) []family {
	if out != Refused {
		return []family{{redeemed: true, current: out}}
	}
	if m.Lossy {
		return []family{f}
	}
	return nil
}

// refresh returns the possible states after a use of the current refresh token.
func (f family) refresh(out string) []family {
	if out == Refused || out == f.current {
		return nil
	}
	return []family{{redeemed: true, previous: f.current, current: out}}
}

// end returns the possible states after a use that must be refused, and that ends the family.
func end(out string) []family {
	if out == Refused || out == Unknown {
		return []family{{redeemed: true, dead: true}}
	}
	return nil
}

// reuse returns the possible states after a use of the previous refresh token. During the token's
// grace period, the answer is the current token again. After it, the use ends the family.
func (m Model) reuse(f family, out string) []family {
	dead := family{redeemed: true, dead: true}
	switch out {
	case Refused:
		if m.Graceful {
			return nil
		}
		return []family{dead}
	case Unknown:
		if m.Graceful {
			return []family{f}
		}
		return []family{f, dead}
	}

	if f.current == Unknown {
		f.current = out
	}
	if out != f.current {
		return nil
	}
	return []family{f}
}

// model returns m in the form that porcupine needs.
func (m Model) model() porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{family{}} },
		Step: func(state, in, out any) (states []any) {
			for _, f := range m.step(state.(family), in.(Use), out.(string)) {
				states = append(states, f)
			}
			return states
		},
	}
	return nondeterministic.ToModel()
}
