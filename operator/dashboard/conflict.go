package dashboard

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
)

// marks returns a digest of each input's value, for the hidden field "seen" of an edit form. When
// the form is submitted, the digests show which values another operator has changed in the
// meantime.
func marks(groups ...[]input) string {
	digests := make(url.Values)
	for _, in := range flatten(groups...) {
		digests.Set(in.Name, digestOf(in.untouched()))
	}
	return digests.Encode()
}

// flatten returns the inputs of all groups, except secrets, whose values are never shown.
func flatten(groups ...[]input) (inputs []input) {
	for _, group := range groups {
		for _, in := range group {
			switch in.Kind {
			case kindGroup:
				inputs = append(inputs, flatten(in.Members)...)
			case kindSecret:
			default:
				inputs = append(inputs, in)
			}
		}
	}
	return inputs
}

// digestOf returns a short digest of the values of an input.
func digestOf(values []string) string {
	sum := sha256.Sum256([]byte(strings.Join(values, "\n")))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// untouched returns the values that a browser sends for the input if nobody edits it.
func (i input) untouched() (values []string) {
	switch i.Kind {
	case kindCheck:
		if i.Checked {
			values = []string{"yes"}
		}
	case kindSelect, kindCards, kindChoices:
		for _, o := range i.Options {
			if o.Chosen {
				values = append(values, o.Value)
			}
		}
		if i.Kind == kindSelect && values == nil && len(i.Options) > 0 {
			values = []string{i.Options[0].Value}
		}
	default:
		values = []string{normalize(i.Value)}
	}
	return values
}

// sent returns the values that a submitted form contains for the input.
func (i input) sent(posted url.Values) []string {
	switch i.Kind {
	case kindCheck, kindSelect, kindCards, kindChoices:
		return posted[i.Name]
	}
	return []string{normalize(posted.Get(i.Name))}
}

// normalize undoes the changes that browsers make to submitted text.
func normalize(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
}

// rotatedMeanwhile is the error of a form about a secret that has been replaced since the form's page
// was shown.
const rotatedMeanwhile = "Somebody rotated the secret since you opened this page. Nothing was changed. " +
	"Check the secrets below before you continue."

// sawSecret reports whether the form's page was shown with the secret that has this hash. Without
// this check, a form could end a secret that its sender has never seen.
func (v *visit) sawSecret(hash string) bool { return v.form.Get("seen") == secretMark(hash) }

// secretMark returns the value of the field "seen" for a secret with this hash.
func secretMark(hash string) string { return digestOf([]string{hash}) }

// merge combines the submitted form with the current values. Inputs that the sender did not change
// take the current value. If another operator has changed an input to a different value than the
// sender, merge returns a conflict.
func (v *visit) merge(inputs ...[]input) error {
	seen, err := url.ParseQuery(v.form.Get("seen"))
	if err != nil {
		return problem.New(problem.Malformed, "bad_request", "the form is invalid")
	}

	var wrong []error
	for _, in := range flatten(inputs...) {
		now, sent, was := in.untouched(), in.sent(v.form), seen.Get(in.Name)
		isCurrent := was == digestOf(now) || slices.Equal(sent, now) || in.Kind == kindCards && sent == nil
		switch {
		case isCurrent:
		case was == digestOf(sent):
			v.form[in.Name] = now
			if len(now) == 0 {
				delete(v.form, in.Name)
			}
		default:
			text := words.Textf(" was changed by somebody else since you opened this form, to %s."+
				" Save again to overwrite it.", in.current(v.words()))
			wrong = append(wrong, &problem.Error{
				Kind:    problem.Conflict,
				Code:    "changed_meanwhile",
				Param:   in.Name,
				Message: in.Name + text,
			})
		}
	}
	return errors.Join(wrong...)
}

// current describes the current value of an input in words, and shortens a long value.
func (i input) current(w *words.Words) string {
	if i.Kind == kindCheck {
		return w.Text(yesOrNo(i.Checked))
	}
	var titles []string
	for _, value := range i.untouched() {
		for _, o := range i.Options {
			if o.Value == value {
				value = w.Text(o.Title)
			}
		}
		if value != "" {
			titles = append(titles, value)
		}
	}

	text := []rune(strings.Join(titles, ", "))
	switch {
	case len(text) == 0:
		return w.Text("nothing")
	case len(text) > 120:
		text = append(text[:120], '…')
	}
	return w.Text(words.Textf("“%s”", string(text)))
}
