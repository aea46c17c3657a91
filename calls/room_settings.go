package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/selvage/selvage/fabric"
)

// roomKind is the type of conference rooms among the resources.
const roomKind = "video_room"

// roomSettings holds the fields of a conference room that affect its calls. The JSON names are the
// field names in fabric/kinds.
type roomSettings struct {
	MaxMembers    int        `json:"max_members"` // 0 means any number
	JoinFrom      *time.Time `json:"join_from"`
	JoinUntil     *time.Time `json:"join_until"`
	RemoveAt      *time.Time `json:"remove_at"`
	RemoveAfter   *int       `json:"remove_after_seconds_elapsed"`
	Record        bool       `json:"record_on_start"`
	Tones         bool       `json:"tone_on_entry_and_exit"`
	VideoOff      bool       `json:"room_join_video_off"`
	SubscriberOff bool       `json:"user_join_video_off"`
	HandsFirst    bool       `json:"prioritize_handraise"`
}

// settings returns the current settings of a room. If the room has been deleted since its
// address was found, it returns problem.NotFound.
func (o *openRooms) settings(ctx context.Context, projectID, id string) (s roomSettings, err error) {
	k := o.calls.fabric.Resources.Kinds().ByType(roomKind)
	resource, err := o.calls.fabric.Resources.Find(ctx, projectID, k, id)
	if err != nil {
		return s, err
	}
	text, err := json.Marshal(resource.Fields)
	if err != nil {
		return s, fmt.Errorf("reading the settings of a room: %w", err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("reading the settings of a room: %w", err)
	}
	return s, nil
}

// refuse returns the cause that prevents everyone from joining now, if any.
func (s roomSettings) refuse(now time.Time) Cause {
	switch {
	case s.JoinFrom != nil && now.Before(*s.JoinFrom),
		s.JoinUntil != nil && !now.Before(*s.JoinUntil),
		s.RemoveAt != nil && !now.Before(*s.RemoveAt):
		return NotOpen
	}
	return Cause{}
}

// limitStay schedules the end of the call of a member that joined at the given time. The settings
// determine how long the member may stay.
func (s roomSettings) limitStay(k *call, joined time.Time) {
	stay := k.timeLeft()
	if s.RemoveAfter != nil && *s.RemoveAfter > 0 {
		stay = min(stay, time.Duration(*s.RemoveAfter)*time.Second-time.Since(joined))
	}
	if s.RemoveAt != nil {
		stay = min(stay, time.Until(*s.RemoveAt))
	}
	k.endTimer.Stop()
	k.endTimer = time.AfterFunc(stay, func() { k.post(func() { k.end(Removed) }) })
}

// joinsWithoutVideo reports whether a new member joins with its video muted.
func (s roomSettings) joinsWithoutVideo(l *leg) bool {
	return s.VideoOff || s.SubscriberOff && l.client.Token.Kind == fabric.SAT
}

// refuse begins a call and ends it immediately with a cause.
func (c *Calls) refuse(ctx context.Context, client Client, cmd Command, from, to Party, cause Cause) error {
	return c.refuseFor(ctx, client, cmd, from, to, cause, "")
}

// refuseFor is like refuse. It also records the rule that the call breaks.
func (c *Calls) refuseFor(
	ctx context.Context, client Client, cmd Command, from, to Party, cause Cause, reason string,
) error {
	if err := c.counts().admitRejected(client); err != nil {
		return err
	}
	k := c.newCall(client, cmd, from, to)
	k.record.Refusal = reason
	return beginIn(ctx, k, func() error { return k.begin(client, cmd, cause) })
}
