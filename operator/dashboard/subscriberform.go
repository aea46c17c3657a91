package dashboard

import (
	"slices"
	"strconv"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/words"
)

// A subscriberForm is the form that creates or changes a subscriber.
type subscriberForm struct {
	Back   string
	BackTo string
	Action string
	Title  string
	Button string
	Link   string // path that also creates a link for the new subscriber, or ""
	Form   form
}

// newSubscriberForm returns the form for a new subscriber.
func (a *subscriberPages) newSubscriberForm(v *visit) subscriberForm {
	list := v.base() + "/subscribers"
	inputs := a.subscriberInputs(fabric.Subscriber{}, "Leave empty for no password. They can choose "+
		"one with an invitation that you send next.")
	email := &inputs.Inputs[0]
	email.Required = true
	email.Focus = true
	email.Live = &liveHint{
		Text:  "Their address is derived from the part before the @: ada@example.com is called at /private/ada.",
		Path:  list + "/address",
		Names: "email",
	}
	return subscriberForm{
		Back:   list,
		Action: list,
		Title:  "New subscriber",
		Button: "Add subscriber",
		Link:   list + "/link",
		Form:   inputs,
	}
}

// editSubscriberForm returns the form that changes a subscriber.
func (a *subscriberPages) editSubscriberForm(v *visit, s fabric.Subscriber) subscriberForm {
	inputs := a.subscriberInputs(s, "Leave empty to keep it. A new one ends their sessions and tokens.")
	inputs.Inputs[0].Required = s.Email != ""
	inputs.mark()
	row := v.subscriberRow(s)
	return subscriberForm{
		Back:   row.URL,
		BackTo: row.Title,
		Action: row.URL + "/edit",
		Title:  words.Textf("Edit %s", row.Title),
		Button: "Save changes",
		Form:   inputs,
	}
}

// subscriberInputs returns the inputs of the forms that create and change a subscriber. The email
// comes first.
func (a *subscriberPages) subscriberInputs(s fabric.Subscriber, passwordHint string) form {
	text := func(name, label, value, hint string) input {
		return input{Kind: kindText, Type: "text", Name: name, Label: label, Value: value, Hint: hint, Length: 255}
	}
	email := text("email", "Email", s.Email, "They sign in with it.")
	email.Type = "email"
	email.Length = 254
	least, most := a.Fabric.Subscribers.PasswordLength()
	rule := words.Textf("%s to %s characters that are hard to guess, such as four unrelated words.", least, most)

	person := make([]input, len(fabric.PersonFields)) // the first two are the first and the last name
	for i, f := range fabric.PersonFields {
		person[i] = text(f.Name, f.Label, *f.Text(&s.Person), personHints[f.Name])
	}
	password := input{
		Kind:  kindSecret,
		Name:  "password",
		Label: "Password",
		Hint:  words.Sentences(rule, passwordHint),
	}
	generate := input{
		Kind:  kindCheck,
		Name:  "generate",
		Label: "Generate a password",
		Hint:  "It is shown once, after you save.",
	}
	record := input{
		Kind:    kindSelect,
		Name:    "record_calls",
		Label:   "Recording of calls",
		Options: selectChoices(recordSettings, string(s.RecordCalls)),
		Hint:    words.Sentences("A call is recorded if recording is on for one of its subscribers.", recordConsent),
	}
	return form{
		Inputs: []input{email, person[0], person[1], password, generate},
		More:   slices.Concat(person[2:], []input{record}, forwardingInputs(s.Forwarding)),
		About:  "Display name, company, calls",
	}
}

// personHints contains the hints of the inputs for fields of a [fabric.Person], by field.
var personHints = map[string]string{
	"display_name": "Shown to others instead of first and last name.",
	"time_zone":    "For example Europe/Berlin.",
}

// forwardingInputs returns the inputs that set where a subscriber's calls are forwarded.
func forwardingInputs(f fabric.Forwarding) []input {
	forward := func(name, label, value, hint string) input {
		return input{
			Kind:    kindText,
			Type:    "text",
			Name:    name,
			Label:   label,
			Value:   value,
			Hint:    hint,
			Length:  255,
			Example: "/private/bob",
		}
	}

	ring := input{
		Kind:  kindText,
		Type:  "number",
		Min:   "0",
		Max:   "60",
		Name:  "ring_seconds",
		Label: "Seconds to ring before forwarding",
		Value: strconv.Itoa(f.RingSeconds),
		Hint:  "5 to 60, or 0 for 20.",
	}
	return []input{
		forward("forward_busy", "Forward when busy", f.Busy,
			"An address or a phone number, for calls that they reject or that come while others ring."),
		forward("forward_no_answer", "Forward when unanswered", f.NoAnswer,
			"Also if they are offline. Calls to phone numbers follow the project’s rules, and count as theirs."),
		ring,
	}
}

// recordSettings lists the options for a subscriber's record_calls. The default comes first.
var recordSettings = []choice{
	{Value: string(fabric.RecordInherit), Title: "As in the project’s rules"},
	{Value: string(fabric.RecordOff), Title: "Off"},
	{Value: string(fabric.RecordOn), Title: "On"},
}

// subscriberInput returns the fields that the form changes.
func (v *visit) subscriberInput(s fabric.Subscriber) (in fabric.SubscriberInput) {
	set := func(name, current string, field **string) {
		if text := v.form.Get(name); text != current {
			*field = &text
		}
	}

	set("email", s.Email, &in.Email)
	for _, f := range fabric.PersonFields {
		set(f.Name, *f.Text(&s.Person), f.Input(&in.Profile))
	}
	if secret := v.form.Get("password"); secret != "" {
		in.Password = &secret
	}
	set("forward_busy", s.Forwarding.Busy, &in.Forwarding.Busy)
	set("forward_no_answer", s.Forwarding.NoAnswer, &in.Forwarding.NoAnswer)

	if text := v.form.Get("ring_seconds"); text != "" && text != strconv.Itoa(s.Forwarding.RingSeconds) {
		n, err := strconv.Atoi(text)
		if err != nil {
			n = -1 // an invalid number, so that the error names the bounds
		}
		in.Forwarding.RingSeconds = &n
	}
	if text := v.form.Get("record_calls"); text != string(s.RecordCalls) && v.form.Has("record_calls") {
		in.RecordCalls = (*fabric.RecordCalls)(&text)
	}
	return in
}

// newSubscriberInput returns the fields of the form for a new subscriber.
func newSubscriberInput(v *visit) fabric.SubscriberInput {
	in := v.subscriberInput(fabric.Subscriber{})
	if in.Email == nil {
		in.Email = new(string) // an empty email is reported, because the email is required
	}
	return in
}
