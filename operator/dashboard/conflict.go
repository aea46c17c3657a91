package dashboard

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// marks tell what the inputs of a form show: of each a digest. They go along with a form
// that changes something, and come back with it, so that what others changed meanwhile is
// seen.
func marks(groups ...[]input) string {
	all := make(url.Values)
	for _, in := range flatten(groups...) {
		all.Set(in.Name, mark(in.untouched()))
	}
	return all.Encode()
}

// flatten returns the inputs of all groups, but for secrets, which no form shows.
func flatten(groups ...[]input) (all []input) {
	for _, group := range groups {
		for _, in := range group {
			switch in.Kind {
			case "group":
				all = append(all, flatten(in.Members)...)
			case "secret":
			default:
				all = append(all, in)
			}
		}
	}
	return all
}

func mark(values []string) string {
	sum := sha256.Sum256([]byte(strings.Join(values, "\n")))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// untouched is what a browser would send of an input that nobody touches.
func (i input) untouched() (values []string) {
	switch i.Kind {
	case "check":
		if i.Checked {
			values = []string{"yes"}
		}
	case "select", "cards", "choices":
		for _, o := range i.Options {
			if o.Chosen {
				values = append(values, o.Value)
			}
		}
		if i.Kind == "select" && values == nil && len(i.Options) > 0 {
			values = []string{i.Options[0].Value}
		}
	default:
		values = []string{normalize(i.Value)}
	}
	return values
}

// sent is what a form has of an input.
func (i input) sent(posted url.Values) []string {
	switch i.Kind {
	case "check", "select", "cards", "choices":
		return posted[i.Name]
	}
	return []string{normalize(posted.Get(i.Name))}
}

// normalize writes a text as it is before and after it was in a form.
func normalize(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
}

// merge makes a form that was sent as it is to be written: what its sender left as the form
// showed it becomes what it is now, in the inputs, whoever has changed it since. What both
// changed, each to something else, is a conflict at its input.
func (v *visit) merge(inputs ...[]input) error {
	seen, err := url.ParseQuery(v.form.Get("seen"))
	if err != nil {
		return problem.New(problem.Malformed, "bad_request", "the form cannot be read")
	}
	var wrong []error
	for _, in := range flatten(inputs...) {
		now, sent, was := in.untouched(), in.sent(v.form), seen.Get(in.Name)
		switch {
		case was == mark(now) || slices.Equal(sent, now) || in.Kind == "cards" && sent == nil:
		case was == mark(sent):
			if v.form[in.Name] = now; len(now) == 0 {
				delete(v.form, in.Name)
			}
		default:
			wrong = append(wrong, &problem.Error{
				Kind: problem.Conflict, Code: "changed_meanwhile", Param: in.Name,
				Message: in.Name + " was changed by another since you opened this, to " +
					in.told() + ": save again to write over it",
			})
		}
	}
	return join(wrong)
}

// told writes what is in an input for people, shortly.
func (i input) told() string {
	var all []string
	for _, value := range i.untouched() {
		for _, o := range i.Options {
			if o.Value == value {
				value = o.Title
			}
		}
		if value != "" {
			all = append(all, value)
		}
	}
	if i.Kind == "check" {
		return map[bool]string{true: "yes", false: "no"}[i.Checked]
	}
	text := []rune(strings.Join(all, ", "))
	switch {
	case len(text) == 0:
		return "nothing"
	case len(text) > 120:
		text = append(text[:120], '…')
	}
	return "“" + string(text) + "”"
}
