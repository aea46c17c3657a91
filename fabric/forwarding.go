package fabric

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/problem"
)

// RingGroupKind is the type of the resources that are ring groups.
const RingGroupKind = "ring_group"

// A Forwarding contains the destinations of calls that a callee does not answer. The zero value
// forwards no calls.
type Forwarding struct {
	// Busy and NoAnswer are addresses, such as /private/bob, or phone numbers in E.164 format. ""
	// forwards no calls. Busy is for a callee that rejects the call or is in too many other calls.
	// NoAnswer is for a callee that does not answer within RingSeconds, or is offline.
	Busy        string `json:"forward_busy,omitempty"`
	NoAnswer    string `json:"forward_no_answer,omitempty"`
	RingSeconds int    `json:"ring_seconds,omitempty"` // 0 means DefaultRingSeconds
}

// The limits and the default of RingSeconds.
const (
	LeastRingSeconds   = 5
	MostRingSeconds    = 60
	DefaultRingSeconds = 20
)

// A RingGroup rings all of its members at the same time.
type RingGroup struct {
	Members []string // addresses and phone numbers, as in Forwarding
	Forwarding
}

// RingGroupOf returns the ring group that a resource describes.
func RingGroupOf(r Resource) (g RingGroup) {
	_ = json.Unmarshal(r.Fields["members"], &g.Members) // the schema ensures the types
	_ = json.Unmarshal(r.Fields["ring_seconds"], &g.RingSeconds)
	for i, m := range g.Members {
		g.Members[i] = targetOf(m)
	}
	g.Busy, g.NoAnswer = targetOf(r.Fields.Text("forward_busy")), targetOf(r.Fields.Text("forward_no_answer"))
	return g
}

// ParseTarget returns an address or a phone number to which calls can be forwarded, in the form for
// [Forwarding]. ok is false for any other text.
func ParseTarget(text string) (target string, ok bool) {
	text = strings.TrimSpace(text)
	if number, ok := ParseNumber(text); ok {
		return number, true
	}
	where, name, found := strings.Cut(strings.TrimPrefix(text, "/"), "/")
	ok = found && strings.HasPrefix(text, "/") && where != "" && name != "" && !strings.ContainsAny(name, "/?#") &&
		checkText("", text) == nil
	if !ok {
		return "", false
	}
	return text, true
}

// checkTarget returns an error unless text is empty or can be parsed as a target.
func checkTarget(param, text string) error {
	if _, ok := ParseTarget(text); ok || strings.TrimSpace(text) == "" {
		return nil
	}
	return problem.BadParam(param, "%s must be an address such as /private/bob or a phone number such as +4930123456",
		param)
}

// targetOf returns the target in a checked text, or "".
func targetOf(text string) string {
	target, _ := ParseTarget(text)
	return target
}

// checkRingGroup checks the rules that the schema of ring groups cannot express.
func checkRingGroup(v kinds.Values) error {
	errs := []error{checkTarget("forward_busy", v.Text("forward_busy")),
		checkTarget("forward_no_answer", v.Text("forward_no_answer"))}
	switch g := RingGroupOf(Resource{Fields: v}); {
	case v["members"] != nil && len(g.Members) == 0:
		errs = append(errs, problem.BadParam("members", "members must have at least one member"))
	case slices.Contains(g.Members, ""):
		errs = append(errs, problem.BadParam("members",
			"members must be addresses such as /private/bob or phone numbers such as +4930123456"))
	}
	return errors.Join(errs...)
}

// check returns everything that is wrong with the forwarding of an input.
func (in ForwardingInput) check() error {
	var errs []error
	if in.Busy != nil {
		errs = append(errs, checkTarget("forward_busy", *in.Busy))
	}
	if in.NoAnswer != nil {
		errs = append(errs, checkTarget("forward_no_answer", *in.NoAnswer))
	}
	if n := in.RingSeconds; n != nil && *n != 0 && (*n < LeastRingSeconds || *n > MostRingSeconds) {
		errs = append(errs, problem.BadParam("ring_seconds", "ring_seconds must be 0 or from %d to %d",
			LeastRingSeconds, MostRingSeconds))
	}
	return errors.Join(errs...)
}

// A ForwardingInput holds the fields of a Forwarding to set; nil fields are left unchanged.
type ForwardingInput struct {
	Busy, NoAnswer *string
	RingSeconds    *int
}

// apply sets the fields of f that are set in the input.
func (in ForwardingInput) apply(f *Forwarding) {
	if in.Busy != nil {
		f.Busy = targetOf(*in.Busy)
	}
	if in.NoAnswer != nil {
		f.NoAnswer = targetOf(*in.NoAnswer)
	}
	if in.RingSeconds != nil {
		f.RingSeconds = *in.RingSeconds
	}
}

// change returns the input with its targets in stored form. It omits values that f already has.
func (in ForwardingInput) change(f Forwarding) ForwardingInput {
	to := f
	in.apply(&to)
	return f.ChangeTo(to)
}

// ChangeTo returns the input that changes f into another forwarding. It has only the fields that
// differ.
func (f Forwarding) ChangeTo(to Forwarding) (c ForwardingInput) {
	if to.Busy != f.Busy {
		c.Busy = &to.Busy
	}
	if to.NoAnswer != f.NoAnswer {
		c.NoAnswer = &to.NoAnswer
	}
	if to.RingSeconds != f.RingSeconds {
		c.RingSeconds = &to.RingSeconds
	}
	return c
}
