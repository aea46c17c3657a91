package calls

import (
	"context"

	"github.com/selvage/selvage/fabric"
)

// Scripts decides what happens in calls to scripts. A script is a resource, such as a SWML script
// or an AI agent, that selvage stores but does not run. The methods of Scripts are safe for
// concurrent use.
type Scripts interface {
	// Next returns what happens next in a call. If it returns no verbs, the call ends.
	Next(ctx context.Context, s ScriptStep) ([]Verb, error)

	// Sound returns the audio at a URL as one channel of samples at 16 kHz, for a call of a project.
	// The caller must call release when it no longer uses the samples.
	Sound(ctx context.Context, projectID, url string) (sound []int16, release func(), err error)
}

// A ScriptStep is the state of a call before the next verbs.
type ScriptStep struct {
	Call   Document
	Script fabric.Resource
	Step   int         // number of the step, from 1
	Last   *VerbResult // result of the last verb; nil in the first step
}

// A Verb is an instruction of Scripts. Each verb uses some of the fields after Name.
type Verb struct {
	Name    VerbName
	URL     string // URL of the audio to play
	Digits  int    // maximum number of digits to read from the caller meanwhile; 0 means none
	Seconds int    // the length of a recording, or the time to wait for each digit
	To      string // address or phone number to connect the caller to
	Cause   string // why the call ends; "" is a normal end
}

// A VerbName names a verb.
type VerbName string

// The verbs. Verbs that need media answer the call first.
const (
	AnswerVerb  VerbName = "answer"
	PlayVerb    VerbName = "play"
	RecordVerb  VerbName = "record"
	ConnectVerb VerbName = "connect"
	HangUpVerb  VerbName = "hangup"
)

// A VerbResult is the outcome of a verb.
type VerbResult struct {
	Verb   VerbName
	Error  string // why the verb failed; "" if it succeeded
	Reason string // the rule that forbids connecting the caller; "" for none

	Digits       string // the digits that the caller pressed; "" for none
	RecordingSid string // the beginning of the recording's Sid; "" if there is none
}

// ScriptCauses contains the causes with which Scripts may end a call, by the text of the cause.
var ScriptCauses = map[string]Cause{
	"": NormalClearing, NormalClearing.Text: NormalClearing, UserBusy.Text: UserBusy, NoAnswer.Text: NoAnswer,
	CallRejected.Text: CallRejected, UnallocatedNumber.Text: UnallocatedNumber,
}
