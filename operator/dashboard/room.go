package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/templates"
)

// roomPages serves the pages that show the sessions of conference rooms, and change them.
type roomPages struct {
	*callPages
	Rooms *calls.Rooms // nil hides all room sessions
}

// A memberRow is the row of a member of a running room session.
type memberRow struct {
	callRow
	Muted, Held bool
}

// A roomPage shows one room session.
type roomPage struct {
	Session    calls.RoomSession
	Document   calls.RoomDocument
	Base, URL  string
	Running    bool
	MayChange  bool
	Live       string // the URL of the session's event stream; "" after the session has ended
	Members    []memberRow
	Past       []callRow // members that have left the session
	Recordings []recordingRow
}

// showRoom serves GET /dashboard/projects/{project}/rooms/{id}.
func (a *roomPages) showRoom(v *visit) error {
	s, err := a.findRoom(v)
	if err != nil {
		return err
	}

	members, err := a.members(v, s)
	if err != nil {
		return err
	}

	isRunning := s.Ended.IsZero()
	p := roomPage{
		Session:   s,
		Document:  s.Document(),
		Base:      v.base(),
		URL:       v.base() + "/rooms/" + s.ID,
		Running:   isRunning,
		MayChange: isRunning && !s.Ending && v.mayIn(operator.Write),
	}
	if p.Running {
		p.Live = v.live(roomMark(s, members))
	}

	for _, r := range members {
		row := v.callRow(r)
		if !row.Running {
			p.Past = append(p.Past, row)
			continue
		}
		p.Members = append(p.Members, memberRow{
			callRow: row,
			Muted:   r.CallerControls&calls.AudioMuted != 0,
			Held:    r.CallerControls&calls.OnHold != 0,
		})
	}

	p.Recordings, err = a.recordingsOfRoom(v, s)
	if err != nil {
		return err
	}
	options := templates.Options{Status: http.StatusOK, Media: true, Connect: []string{"'self'"}}
	return a.pageWith(v, options, "Room session", "room", p)
}

// findRoom returns the room session named in the path.
func (a *roomPages) findRoom(v *visit) (calls.RoomSession, error) {
	if a.Rooms == nil {
		return calls.RoomSession{}, problem.NoSuch("room session")
	}
	return a.Rooms.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
}

// maxPresent is the maximum number of present members that the page of a session shows.
const maxPresent = 300

// members returns the members of a session: the newest of those who are present, and then the newest of
// those who have left.
func (a *roomPages) members(v *visit, s calls.RoomSession) ([]calls.Record, error) {
	present, err := a.Calls.List(v.r.Context(), v.project.ID, calls.Filter{RoomSession: s.ID, Running: true},
		page.Query{Size: maxPresent})
	if err != nil {
		return nil, err
	}
	all, err := a.Rooms.Members(v.r.Context(), v.project.ID, s.ID, page.Query{Size: maxMembersOfCall})
	if err != nil {
		return nil, err
	}

	isShown := make(map[string]bool)
	for _, r := range present.Items {
		isShown[r.ID] = true
	}
	return append(present.Items, slices.DeleteFunc(all.Items, func(r calls.Record) bool {
		return r.State != calls.Completed || isShown[r.ID] // some may have left since present was read
	})...), nil
}

// roomMark returns a string that changes whenever the page of a session must be reloaded.
func roomMark(s calls.RoomSession, members []calls.Record) string {
	h := sha256.New()
	fmt.Fprintln(h, s.Document().Status, s.Locked, s.Recorded)
	for _, r := range members {
		fmt.Fprintln(h, r.ID, r.State, r.CallerControls)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// followRoom serves GET /dashboard/projects/{project}/rooms/{id}/live.
func (a *roomPages) followRoom(v *visit) error {
	if _, err := a.findRoom(v); err != nil {
		return err
	}
	return a.follow(v, func(context.Context) (string, error) {
		s, err := a.findRoom(v)
		if err != nil {
			return "", err
		}
		members, err := a.members(v, s)
		if err != nil {
			return "", err
		}
		return roomMark(s, members), nil
	})
}

// recordingsOfRoom returns the latest recordings of a room session.
func (a *roomPages) recordingsOfRoom(v *visit, s calls.RoomSession) ([]recordingRow, error) {
	owner := recordings.Owner{ProjectID: v.project.ID}
	return a.latestRecordings(v, recordings.Filter{Owner: owner, ConferenceSid: s.ID})
}

// endRoom serves POST /dashboard/projects/{project}/rooms/{id}/end.
func (a *roomPages) endRoom(v *visit) error {
	s, err := a.findRoom(v)
	if err != nil {
		return err
	}
	one := v.base() + "/rooms/" + s.ID
	err = a.Rooms.End(v.r.Context(), v.project.ID, s.ID)
	if errors.Is(err, problem.NotFound) {
		return v.redirect(one + "?done=roomover")
	}
	if err != nil {
		return err
	}
	return v.redirect(one + "?done=roomended")
}

// changeMember serves POST /dashboard/projects/{project}/rooms/{id}/members/{member}/{change}, where
// change is mute, unmute or remove.
func (a *roomPages) changeMember(v *visit) error {
	s, err := a.findRoom(v)
	if err != nil {
		return err
	}
	member, err := a.Calls.Find(v.r.Context(), v.project.ID, "", v.r.PathValue("member"))
	if err != nil {
		return err
	}
	if member.RoomSession != s.ID {
		return problem.NoSuch("member")
	}

	done := "memberchanged"
	switch change := v.r.PathValue("change"); change {
	case "mute", "unmute":
		err = a.Calls.Mute(v.r.Context(), v.project.ID, member.ID, change == "mute")
	case "remove":
		done = "memberremoved"
		err = a.Calls.HangUp(v.r.Context(), v.project.ID, member.ID)
	default:
		return problem.NoSuch("page")
	}
	if errors.Is(err, problem.NotFound) {
		done, err = "memberleft", nil
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/rooms/" + s.ID + "?done=" + done)
}
