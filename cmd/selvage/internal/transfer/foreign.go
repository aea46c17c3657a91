package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Foreign holds the records of a file that another system wrote.
type Foreign struct {
	Clients     []*Client
	Subscribers []*Subscriber
	// Unmapped lists what the records have no place for, sorted by What.
	Unmapped []Unmapped
}

// An Unmapped is a member of users or clients, or a part of the file, that was not imported.
type Unmapped struct {
	What    string `json:"unmapped"` // such as "users.groups"
	Count   int    `json:"count"`
	Example string `json:"example,omitempty"` // the first user or client that has it
	Why     string `json:"why,omitempty"`
}

// unmapped collects what has no place.
type unmapped map[string]*Unmapped

// add counts one occurrence.
func (u unmapped) add(what, example, why string) {
	if u[what] == nil {
		u[what] = &Unmapped{What: what, Example: example, Why: why}
	}
	u[what].Count++
}

// list returns everything, sorted.
func (u unmapped) list() (all []Unmapped) {
	for _, m := range u {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Unmapped) int { return strings.Compare(a.What, b.What) })
	return all
}

// An object is a JSON object of which members are taken one by one, so that the rest can be reported.
type object map[string]json.RawMessage

// take decodes a member into v and removes it. A missing member leaves v unchanged. A member of
// another type stays, so it is reported.
func (o object) take(name string, v any) {
	raw, ok := o[name]
	if !ok || string(raw) == "null" {
		delete(o, name)
		return
	}
	if json.Unmarshal(raw, v) == nil {
		delete(o, name)
	}
}

// text takes a member that is a string.
func (o object) text(name string) (text string) {
	o.take(name, &text)
	return text
}

// flag takes a member that is a boolean.
func (o object) flag(name string) (on bool) {
	o.take(name, &on)
	return on
}

// ignore removes members that have no meaning here.
func (o object) ignore(names ...string) {
	for _, name := range names {
		delete(o, name)
	}
}

// rest counts the members that are left and not empty.
func (o object) rest(u unmapped, prefix, example string) {
	for name, raw := range o {
		switch string(raw) {
		case `null`, `""`, `[]`, `{}`, `false`, `0`:
			continue
		}
		u.add(prefix+"."+name, example, "")
	}
}

// maxForeign is the maximum size of a file of another system, which is read as a whole.
const maxForeign = 1 << 30

// readObjects returns the objects in a file: those of an array, or one or several after each other.
func readObjects(r io.Reader) (all []object, err error) {
	limited := &io.LimitedReader{R: r, N: maxForeign + 1}
	dec := json.NewDecoder(limited)
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if limited.N <= 0 {
			return nil, fmt.Errorf("the file has more than %d MiB; split it", maxForeign>>20)
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("after %d bytes, this is not JSON: %w", dec.InputOffset(), err)
		}

		some := []object{nil}
		if raw[0] == '[' {
			err = json.Unmarshal(raw, &some)
		} else {
			err = json.Unmarshal(raw, &some[0])
		}
		if err != nil || slices.ContainsFunc(some, func(o object) bool { return o == nil }) {
			return nil, errors.New("the file must contain JSON objects, or an array of them")
		}
		all = append(all, some...)
	}
}
