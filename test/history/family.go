// Package history records what clients request for a login, and the answers, while nodes and
// databases fail. It then checks whether there is an order of the requests that explains all
// answers.
//
// A login consists of a code, which may be redeemed once, and of the refresh tokens that follow
// from it. A request without an answer may or may not have had an effect.
package history

import "github.com/anishathalye/porcupine"

// A Use presents a refresh token, or the code if Token is empty. Its output is the refresh token in
// the answer, or Refused, or Unknown.
type Use struct{ Token string }

// These are the outputs of a Use that are not refresh tokens.
const (
	Refused = ""
	Unknown = "?" // the answer was lost, or was a 5xx status
)

// A Model describes what the server promises about logins.
type Model struct {
	Graceful bool // whether every used refresh token is still in its grace period
	Lossy    bool // whether the session store may lose codes that were not redeemed
}

// A family is the state of a login: its code and its last two refresh tokens.
type family struct {
	redeemed, dead    bool
	previous, current string // current is Unknown if the answer that contained it was lost
}

// step returns the possible states after a use with this output. It returns nil if the use cannot
// have this output.
func (m Model) step(f family, in Use, out string) []family {
	var (
		dead = family{redeemed: true, dead: true}
		next = family{redeemed: true, previous: f.current, current: out}
	)
	refusedOrUnknown := out == Refused || out == Unknown

	switch {
	case in.Token == "" && !f.redeemed:
		if out != Refused {
			return []family{{redeemed: true, current: out}}
		}
		if m.Lossy {
			return []family{f}
		}
		return nil
	case f.dead || in.Token == "": // a second use of the code ends the family
		if refusedOrUnknown {
			return []family{dead}
		}
		return nil
	case in.Token == f.current:
		if out == Refused || out == f.current {
			return nil
		}
		return []family{next}
	case in.Token == f.previous:
		return m.reuse(f, out)
	case refusedOrUnknown: // an older token ends the family
		return []family{dead}
	}
	return nil
}

// reuse returns the possible states after a use of the previous refresh token. During its grace
// period, the answer is the current token again. After the grace period, the use ends the family.
func (m Model) reuse(f family, out string) []family {
	dead := family{redeemed: true, dead: true}
	switch {
	case out == Refused && m.Graceful:
		return nil
	case out == Refused:
		return []family{dead}
	case out == Unknown && m.Graceful:
		return []family{f}
	case out == Unknown:
		return []family{f, dead}
	case f.current == Unknown:
		f.current = out
		return []family{f}
	case out == f.current:
		return []family{f}
	}
	return nil
}

// model returns m for porcupine.
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
