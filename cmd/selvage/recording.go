package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

var recordingView = view[recordings.Recording]{
	id: func(r recordings.Recording) string { return r.Sid },
	json: func(r recordings.Recording) any {
		return struct {
			Sid           string            `json:"sid"`
			ProjectID     string            `json:"project_id"`
			CallSid       string            `json:"call_sid,omitempty"`
			ConferenceSid string            `json:"conference_sid,omitempty"`
			From          string            `json:"from,omitempty"`
			To            string            `json:"to,omitempty"`
			Direction     string            `json:"direction,omitempty"`
			Source        string            `json:"source"`
			Track         string            `json:"track"`
			Status        recordings.Status `json:"status"`
			Duration      float64           `json:"duration"`
			Codec         string            `json:"codec"`
			SampleRate    int               `json:"sample_rate"`
			Channels      int               `json:"channels"`
			Bytes         int64             `json:"bytes"`
			SHA256        string            `json:"sha256"`
			Repairs       []string          `json:"repairs,omitempty"`
			Levels        *levels.Facts     `json:"levels"` // null where nothing could be measured
			StartTime     moment            `json:"start_time,omitempty"`
			CreatedAt     moment            `json:"created_at"`
		}{
			r.Sid, r.ProjectID, r.CallSid, r.ConferenceSid, r.From, r.To, r.Direction, r.Source, r.Track,
			r.Status, r.Duration().Seconds(),
			r.Codec, r.SampleRate, r.Channels, r.Bytes, r.SHA256, r.Repairs, r.Levels, iso(r.StartTime),
			iso(r.Created),
		}
	},
	facts: []fact[recordings.Recording]{
		{name: "Sid", value: func(r recordings.Recording) string { return r.Sid }},
		{name: "Project", detail: true, value: func(r recordings.Recording) string { return r.ProjectID }},
		{name: "Status", value: func(r recordings.Recording) string { return string(r.Status) }},
		{name: "Length", value: func(r recordings.Recording) string { return heard(r, length(r.Duration())) }},
		{name: "Created", aside: true, value: func(r recordings.Recording) string { return stamp(r.Created) }},
		{name: "Started", detail: true, value: func(r recordings.Recording) string { return stamp(r.StartTime) }},
		{name: "From", value: func(r recordings.Recording) string { return r.From }},
		{name: "To", value: func(r recordings.Recording) string { return r.To }},
		{name: "Call", detail: true, value: func(r recordings.Recording) string { return r.CallSid }},
		{name: "Conference", detail: true, value: func(r recordings.Recording) string { return r.ConferenceSid }},
		{name: "Direction", detail: true, value: func(r recordings.Recording) string { return r.Direction }},
		{name: "Size", value: func(r recordings.Recording) string { return heard(r, bytesOf(r.Bytes)) }},
		{name: "Format", detail: true, value: audioFormat},
		{name: "SHA-256", detail: true, value: func(r recordings.Recording) string { return r.SHA256 }},
		{name: "Repairs", detail: true, value: func(r recordings.Recording) string { return lines(r.Repairs) }},
		{name: "Flags", value: measured(func(l *levels.Facts) string { return strings.Join(l.Flags.Names(), " ") })},
		{name: "Level", detail: true, value: measured(loudness)},
		{name: "Talk", detail: true, value: measured(talk)},
		{name: "Silence", detail: true, value: measured(silence)},
	},
}

func audioFormat(r recordings.Recording) string {
	return heard(r, fmt.Sprintf("%s, %d Hz, %d channel%s", r.Codec, r.SampleRate, r.Channels,
		strings.Repeat("s", min(1, max(0, r.Channels-1)))))
}

// heard returns a fact of the sound, and nothing where none has come yet.
func heard(r recordings.Recording, fact string) string {
	if r.Codec == "" {
		return ""
	}
	return fact
}

// length writes a duration for people: 0.06s, where Go says 60ms.
func length(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		d = d.Round(time.Millisecond)
	case d < time.Second:
		d = d.Round(10 * time.Millisecond)
	default:
		d = d.Round(100 * time.Millisecond)
	}
	if d < time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
	}
	return d.String()
}

// bytesOf writes a number of bytes for people.
func bytesOf(n int64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if n < 10_000 {
			return strconv.FormatInt(n, 10) + " " + unit
		}
		n = (n + 512) / 1024
	}
	return strconv.FormatInt(n, 10) + " GiB"
}

func (c *cli) recordingCommand() *cobra.Command {
	imports := &cobra.Command{
		Use: "import PATH…", Short: "Store files of audio, and those in directories",
		Args: positional("PATH…"), RunE: c.withMedia(c.importRecordings),
	}
	imports.Flags().String("call-sid", "", "`id` of the call that was recorded")
	imports.Flags().String("subscriber", "", "`id` of the subscriber whose recordings they are")
	ls := &cobra.Command{Use: "list", Short: "List the recordings of a project, newest first",
		Args: positional(), RunE: c.withMedia(c.listRecordings)}
	ls.Flags().String("call", "", "only those of calls whose ids begin with `text`, by these ids")
	ls.Flags().String("party", "", "only those of whoever called or was called: a `number`, or an address")
	ls.Flags().String("flag", "", "only those that are `flag`: "+strings.Join(levels.FlagNames(), ", "))
	show := &cobra.Command{Use: "show SID", Short: "Show a recording", Args: positional("SID"),
		RunE: c.withMedia(c.showRecording)}
	download := &cobra.Command{
		Use: "download SID [FILE]", Short: "Write a recording's bytes to a file, as they came",
		Args: positional("SID", "[FILE]"), RunE: c.withMedia(c.downloadRecording),
		Long: "Writes the bytes of a recording to FILE, as they came; - is stdout. Without FILE it is named by the Sid and by what it is: SID.wav, SID.mp3.",
	}
	download.Flags().String("to", "", "`file` to write, as FILE")
	remove := &cobra.Command{Use: "delete SID", Short: "Delete a recording; a stub of it stays for 40 days",
		Args: positional("SID"), RunE: c.withMedia(c.deleteRecording)}
	addYes(remove)
	link := c.linkCommand()
	for _, cmd := range []*cobra.Command{imports, ls, show, download, remove, link} {
		addProject(cmd)
	}
	return noun("recording", "Recordings: calls that were recorded", imports, ls, show, download, link, remove)
}

func (c *cli) listRecordings(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	filter := recordings.Filter{Owner: recordings.Owner{ProjectID: p.ID}}
	for name, into := range map[string]*string{"call": &filter.CallBegins, "party": &filter.Party} {
		if given := text(cmd, name); given != nil {
			*into = *given
		}
	}
	if name, _ := cmd.Flags().GetString("flag"); name != "" {
		var ok bool
		if filter.Flag, ok = levels.FlagOf(name); !ok {
			return fmt.Errorf("--flag must be one of %s", strings.Join(levels.FlagNames(), ", "))
		}
	}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[recordings.Recording], error) {
		return a.Recordings.List(ctx, filter, q)
	})
	if err != nil {
		return err
	}
	return list(c, recordingView, found)
}

func (a *app) recording(ctx context.Context, cmd *cobra.Command, sid string) (recordings.Recording, error) {
	return among(ctx, a, cmd, func(projectID string) (recordings.Recording, error) {
		return a.Recordings.Find(ctx, recordings.Owner{ProjectID: projectID}, sid)
	})
}

func (c *cli) showRecording(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.recording(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return one(c, recordingView, r)
}

func (c *cli) deleteRecording(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.recording(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if err := c.confirm(cmd, "This deletes the recording "+r.Sid+".", r.Sid); err != nil {
		return err
	}
	return a.Recordings.Delete(ctx, r.ProjectID, r.Sid)
}

func (c *cli) downloadRecording(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.recording(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	name, _ := cmd.Flags().GetString("to")
	if len(args) > 1 && name != "" {
		return usagef("FILE and --to say the same: give one of them")
	} else if len(args) > 1 {
		name = args[1]
	}
	media, err := a.Recordings.Render(ctx, recordings.Owner{ProjectID: r.ProjectID}, r.Sid,
		recordings.Wanted{Format: recordings.Original})
	if err != nil {
		return err
	}
	defer media.Close()
	switch name {
	case "-":
		_, err := io.Copy(c.stdout, media.Content)
		return err
	case "":
		name = r.Sid + media.Ext
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already: name another FILE", name)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(f, media.Content)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	_, err = fmt.Fprintln(c.stdout, name)
	return err
}
