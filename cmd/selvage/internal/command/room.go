package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/page"
)

var roomSessionView = cli.View[calls.RoomSession]{
	ID:   func(s calls.RoomSession) string { return s.ID },
	JSON: func(s calls.RoomSession) any { return s.Document() },
	Facts: []cli.Fact[calls.RoomSession]{
		{Name: "ID", Value: func(s calls.RoomSession) string { return s.ID }},
		{Name: "Project", Detail: true, Value: func(s calls.RoomSession) string { return s.ProjectID }},
		{Name: "Room", Value: func(s calls.RoomSession) string { return s.Address }},
		{Name: "Name", Detail: true, Value: func(s calls.RoomSession) string { return s.Name }},
		{Name: "State", Value: func(s calls.RoomSession) string { return s.Document().Status }},
		{Name: "Began", Value: func(s calls.RoomSession) string { return cli.FormatTime(s.Started) }},
		{Name: "Ended", Detail: true, Value: func(s calls.RoomSession) string { return cli.FormatTime(s.Ended) }},
		{Name: "Length", Value: formatSessionTime},
		{Name: "Locked", Detail: true, Value: func(s calls.RoomSession) string { return cli.YesNo(s.Locked) }},
		{Name: "Recorded", Detail: true, Value: func(s calls.RoomSession) string { return cli.YesNo(s.Recorded) }},
	},
}

// formatSessionTime returns how long a room session lasted, or has lasted so far.
func formatSessionTime(s calls.RoomSession) string {
	return s.Duration(time.Now()).Round(time.Second).String()
}

var findRoomSession = inAnyProject(func(a *app) finder[calls.RoomSession] { return a.RoomSessions.Find })

func (c *commands) roomCommand() *cobra.Command {
	n := noun[calls.RoomSession]{commands: c, view: roomSessionView, find: findRoomSession, list: listRoomSessions}
	ls := n.listCommand("list", "List the room sessions of a project, the newest first")
	ls.Flags().Bool("running", false, "only sessions that have not ended")
	ls.Flags().String("room", "", "only sessions of the conference room with this `id`")
	show := n.showCommand("show ID", "Show a room session")
	end := n.changeCommand("end ID", "End a room session for all members, within a second",
		func(ctx context.Context, a *app, _ *cobra.Command, s calls.RoomSession) (calls.RoomSession, error) {
			if !s.Ended.IsZero() {
				return s, fmt.Errorf("the room session %s has ended already", s.ID)
			}
			return s, a.RoomSessions.End(ctx, s.ProjectID, s.ID)
		})
	addProject(ls, show, end)
	return cli.Noun("room", "Conference rooms", cli.Noun("session", "Sessions of conference rooms", ls, show, end))
}

func listRoomSessions(ctx context.Context, a *app, cmd *cobra.Command) ([]calls.RoomSession, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	var filter calls.RoomFilter
	filter.Running, _ = cmd.Flags().GetBool("running")
	cli.Set(cmd, "room", &filter.RoomID)
	return page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[calls.RoomSession], error) {
		return a.RoomSessions.List(ctx, p.ID, filter, q)
	})
}
