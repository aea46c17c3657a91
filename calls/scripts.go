package calls

import (
	"context"

	"github.com/selvage/selvage/fabric"
)

// Scripts decides what happens in calls to scripts: resources such as SWML scripts and AI agents, which
// selvage stores but does not run. It is safe for concurrent use.
type Scripts interface {
	// Next returns what happens next in a call. No verbs end the call.
	Next(ctx context.Context, s ScriptStep) ([]Verb, error)

	// Sound returns the audio at a URL: one channel of samples at 16 kHz. release must be called once the
	// samples are no longer used.
	Sound(ctx context.Context, url string) (sound []int16, release func(), err error)
}

// A ScriptStep is the state of a call before the next verbs.
type ScriptStep struct {
	Call   Document
	Script fabric.Resource
	Step   int         // from 1
	Last   *VerbResult // of the last verb; nil in the first step
}

// A Verb is an instruction of Scripts. The fields after Name are parameters of single verbs.
type Verb struct {
	Name  VerbName
	URL   string // of the audio to play
	To    string // address or phone number to connect
	Cause string // why the call ends; "" is a normal end
}

// A VerbName names a verb.
type VerbName string

// The verbs. Those that need media answer the call first.
const (
	AnswerVerb  VerbName = "answer"
	PlayVerb    VerbName = "play"
	ConnectVerb VerbName = "connect"
	HangUpVerb  VerbName = "hangup"
)

// A VerbResult is the outcome of a verb.
type VerbResult struct {
	Verb   VerbName
	Error  string // why it failed; "" if it succeeded
	Reason string // the rule that forbids to connect the caller; "" for none
}

// ScriptCauses are the causes with which Scripts may end a call, by text.
var ScriptCauses = map[string]Cause{
	"": NormalClearing, NormalClearing.Text: NormalClearing, UserBusy.Text: UserBusy, NoAnswer.Text: NoAnswer,
	CallRejected.Text: CallRejected, UnallocatedNumber.Text: UnallocatedNumber,
}
