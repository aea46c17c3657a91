package fabric

import "time"

// A Counted names something that is counted for each project and day.
type Counted string

const (
	CountedSignIns    Counted = "sign_ins"     // sign-ins of subscribers
	CountedActive     Counted = "active"       // subscribers who signed in, each once a day
	CountedMonthly    Counted = "active_month" // subscribers who signed in, each once a month
	CountedTokens     Counted = "tokens"       // fabric tokens that were issued
	CountedCalls      Counted = "calls"        // calls that ended
	CountedRecordings Counted = "recordings"   // recordings that were stored
)

// A DailyCount is the number of times that something happened in a project on a day. Counts may be
// too low, because a server that crashes loses the counts of its last seconds.
type DailyCount struct {
	ProjectID string
	Day       time.Time // midnight in UTC
	Of        Counted
	N         int64
}
