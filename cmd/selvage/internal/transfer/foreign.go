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
	// Unmapped lists the parts of the records that selvage cannot store, sorted by What.
	Unmapped []Unmapped
}

// An Unmapped is a part of the file, such as a member of its users or clients, that is not imported.
type Unmapped struct {
	What    string `json:"unmapped"` // name of the member, such as "users.groups"
	Count   int    `json:"count"`
	Example string `json:"example,omitempty"` // first user or client that has the member
	Why     string `json:"why,omitempty"`
}

// unmapped collects the parts of a file that selvage cannot store.
type unmapped map[string]*Unmapped

// add counts one occurrence.
func (u unmapped) add(what, example, why string) {
	if u[what] == nil {
		u[what] = &Unmapped{What: what, Example: example, Why: why}
	}
	u[what].Count++
}

// list returns all entries, sorted.
func (u unmapped) list() (all []Unmapped) {
	for _, m := range u {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Unmapped) int { return strings.Compare(a.What, b.What) })
	return all
}

// An object is a JSON object. Readers remove the members that they understand, so that the
// remaining members can be reported.
type object map[string]json.RawMessage

// take decodes a member into v and removes the member. If it is missing, v stays unchanged. A member of a
// different type stays in the object, so that rest reports it.
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

// ignore removes members that selvage does not need.
func (o object) ignore(names ...string) {
	for _, name := range names {
		delete(o, name)
	}
}

// rest counts the members that remain and are not empty.
func (o object) rest(u unmapped, prefix, example string) {
	for name, raw := range o {
		switch string(raw) {
		case `null`, `""`, `[]`, `{}`, `false`, `0`:
			continue
		}
		u.add(prefix+"."+name, example, "")
	}
}

// maxForeign is the maximum size of a file from another system. Such a file is read as a whole.
const maxForeign = 1 << 30

// readObjects returns the objects in a file. The file contains an array of objects, or objects one
// after the other.
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

		batch := []object{nil}
		if raw[0] == '[' {
			err = json.Unmarshal(raw, &batch)
		} else {
			err = json.Unmarshal(raw, &batch[0])
		}
		if err != nil || slices.ContainsFunc(batch, isNull) {
			return nil, errors.New("the file must contain JSON objects, or an array of them")
		}
		all = append(all, batch...)
	}
}

func isNull(o object) bool { return o == nil }
