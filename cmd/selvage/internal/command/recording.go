package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

var recordingView = cli.View[recordings.Recording]{
	ID: func(r recordings.Recording) string { return r.Sid },
	JSON: func(r recordings.Recording) any {
		return struct {
			Sid           string            `json:"sid"`
			ProjectID     string            `json:"project_id"`
			CallSid       string            `json:"call_sid,omitempty"`
			ConferenceSid string            `json:"conference_sid,omitempty"`
			From          string            `json:"from,omitempty"`
			To            string            `json:"to,omitempty"`
			Direction     string            `json:"direction,omitempty"`
			Name          string            `json:"name,omitempty"`
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
			Levels        *levels.Facts     `json:"levels"` // null if the levels could not be measured
			Tags          []string          `json:"tags,omitempty"`
			Hold          string            `json:"hold,omitempty"`
			StartTime     cli.Time          `json:"start_time,omitempty"`
			CreatedAt     cli.Time          `json:"created_at"`
		}{
			Sid:           r.Sid,
			ProjectID:     r.ProjectID,
			CallSid:       r.CallSid,
			ConferenceSid: r.ConferenceSid,
			From:          r.From,
			To:            r.To,
			Direction:     r.Direction,
			Name:          r.Name,
			Source:        r.Source,
			Track:         r.Track,
			Status:        r.Status,
			Duration:      r.Duration().Seconds(),
			Codec:         r.Codec,
			SampleRate:    r.SampleRate,
			Channels:      r.Channels,
			Bytes:         r.Bytes,
			SHA256:        r.SHA256,
			Repairs:       r.Repairs,
			Levels:        r.Levels,
			Tags:          r.Tags,
			Hold:          r.Hold,
			StartTime:     cli.UTC(r.StartTime),
			CreatedAt:     cli.UTC(r.Created),
		}
	},
	Facts: []cli.Fact[recordings.Recording]{
		{Name: "Sid", Value: func(r recordings.Recording) string { return r.Sid }},
		{Name: "Project", Detail: true, Value: func(r recordings.Recording) string { return r.ProjectID }},
		{Name: "Status", Value: func(r recordings.Recording) string { return string(r.Status) }},
		{Name: "Length", Value: func(r recordings.Recording) string { return ifAudio(r, formatLength(r.Duration())) }},
		{Name: "Created", Minor: true, Value: func(r recordings.Recording) string { return cli.FormatTime(r.Created) }},
		{
			Name:   "Started",
			Detail: true,
			Value:  func(r recordings.Recording) string { return cli.FormatTime(r.StartTime) },
		},
		{Name: "From", Value: func(r recordings.Recording) string { return r.From }},
		{Name: "To", Value: func(r recordings.Recording) string { return r.To }},
		{Name: "Call", Detail: true, Value: func(r recordings.Recording) string { return r.CallSid }},
		{Name: "Conference", Detail: true, Value: func(r recordings.Recording) string { return r.ConferenceSid }},
		{Name: "Direction", Detail: true, Value: func(r recordings.Recording) string { return r.Direction }},
		{Name: "File", Detail: true, Value: func(r recordings.Recording) string { return r.Name }},
		{Name: "Size", Value: func(r recordings.Recording) string { return ifAudio(r, formatBytes(r.Bytes)) }},
		{Name: "Format", Detail: true, Value: formatAudio},
		{Name: "SHA-256", Detail: true, Value: func(r recordings.Recording) string { return r.SHA256 }},
		{Name: "Repairs", Detail: true, Value: func(r recordings.Recording) string { return cli.Lines(r.Repairs) }},
		{Name: "Tags", Detail: true, Value: func(r recordings.Recording) string { return strings.Join(r.Tags, " ") }},
		{Name: "Hold", Detail: true, Value: func(r recordings.Recording) string { return r.Hold }},
		{Name: "Flags", Value: ifMeasured(func(l *levels.Facts) string { return strings.Join(l.Flags.Names(), " ") })},
		{Name: "Level", Detail: true, Value: ifMeasured(formatLoudness)},
		{Name: "Talk", Detail: true, Value: ifMeasured(formatTalk)},
		{Name: "Silence", Detail: true, Value: ifMeasured(formatSilence)},
	},
}

func formatAudio(r recordings.Recording) string {
	return ifAudio(r, fmt.Sprintf("%s, %d Hz, %s", r.Codec, r.SampleRate, cli.Plural(r.Channels, "channel")))
}

// ifAudio returns fact, or "" if no audio has been uploaded for the recording yet.
func ifAudio(r recordings.Recording, fact string) string {
	if r.Codec == "" {
		return ""
	}
	return fact
}

// formatLength formats a duration for people: 0.06s instead of 60ms.
func formatLength(d time.Duration) string {
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

// formatBytes formats a number of bytes for people.
func formatBytes(n int64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if n < 10_000 {
			return strconv.FormatInt(n, 10) + " " + unit
		}
		n = (n + 512) / 1024
	}
	return strconv.FormatInt(n, 10) + " GiB"
}

// ifMeasured returns a fact about the levels of a recording, or "" if they were not measured.
func ifMeasured(format func(l *levels.Facts) string) func(recordings.Recording) string {
	return func(r recordings.Recording) string {
		if r.Levels == nil {
			return ""
		}
		return format(r.Levels)
	}
}

func formatLoudness(l *levels.Facts) string {
	if l.Peak == nil {
		return "none: every sample is zero"
	}
	parts := []string{fmt.Sprintf("peak %.1f dB", *l.Peak), fmt.Sprintf("RMS %.1f dB", *l.RMS)}
	if l.Loudness != nil {
		parts = append([]string{fmt.Sprintf("%.1f LUFS", *l.Loudness)}, parts...)
	}
	if l.Clipped > 0 {
		parts = append(parts, fmt.Sprintf("%.2g%% clipped", l.Clipped*100))
	}
	if math.Abs(l.DCOffset) >= 0.01 {
		parts = append(parts, fmt.Sprintf("DC offset %.0f%%", l.DCOffset*100))
	}
	return strings.Join(parts, ", ")
}

// formatTalk formats the duration of speech on each channel.
func formatTalk(l *levels.Facts) string {
	if l.FirstSpeech == nil {
		return "no speech"
	}
	times := make([]string, len(l.Talk))
	for i, t := range l.Talk {
		times[i] = formatSeconds(t)
	}
	text := strings.Join(times, " and ")
	if l.Overlap != nil && *l.Overlap > 0 {
		text += ", " + formatSeconds(*l.Overlap) + " of it at once"
	}
	return text + ", from " + formatSeconds(*l.FirstSpeech) + " on"
}

func formatSilence(l *levels.Facts) string {
	return fmt.Sprintf("%.0f%% of the time, %s at most", l.SilenceRatio*100, formatSeconds(l.LongestSilence))
}

func formatSeconds(s float64) string { return formatLength(time.Duration(s * float64(time.Second))) }

var findRecording = inAnyProject(func(a *app) finder[recordings.Recording] {
	return func(ctx context.Context, projectID, sid string) (recordings.Recording, error) {
		return a.Recordings.Find(ctx, recordings.Owner{ProjectID: projectID}, sid)
	}
})

// recordingCommands builds the commands for recordings.
type recordingCommands struct{ *commands }

func (c recordingCommands) command() *cobra.Command {
	n := noun[recordings.Recording]{
		commands: c.commands,
		view:     recordingView,
		media:    true,
		find:     findRecording,
		list:     listRecordings,
	}
	ls := n.listCommand("list", "List the recordings of a project, the newest first")
	addRecordingFilter(ls.Flags())
	show := n.showCommand("show SID", "Show a recording")
	remove := n.deleteCommand("delete SID", "Delete a recording; a stub of it stays for 40 days",
		func(r recordings.Recording) (what, name string) {
			return "This deletes the recording " + r.Sid + ".", r.Sid
		},
		func(ctx context.Context, a *app, r recordings.Recording) error {
			return a.Recordings.Delete(ctx, r.ProjectID, r.Sid)
		})

	load := c.recordingImportCommand()
	download := c.downloadCommand()
	link := c.linkCommand()
	verify := c.verifyCommand()
	snippet := c.snippetCommand()
	addProject(load, ls, show, download, remove, link, verify, snippet)
	all := []*cobra.Command{load, ls, show, download, link, remove, verify, snippet}
	all = append(all, c.callbackCommands()...)
	all = append(all, c.keepingCommands(n)...)
	return cli.Noun("recording", "Recordings of calls", all...)
}

// addRecordingFilter adds the flags that select recordings.
func addRecordingFilter(f *pflag.FlagSet) {
	f.String("call", "", "only recordings of calls whose ids begin with `text`, sorted by call id")
	f.String("party", "", "only recordings of calls from or to a `number`, the end of a number, or an address")
	f.String("name", "", "only recordings whose file, conference or addresses have words that begin with this `text`")
	f.String("conference", "", "only recordings of the conference with this `id`")
	f.String("direction", "", "only recordings of calls in this `direction`: "+
		strings.Join(recordings.Directions, ", "))
	f.Var(new(day), "since", "only recordings stored on this `day` (UTC) or later, such as 2030-01-31")
	f.Var(new(day), "until", "only recordings stored until the end of this `day` (UTC)")
	f.Duration("longer", 0, "only recordings of at least this `time`, such as 90s")
	f.Duration("shorter", 0, "only recordings of less than this `time`")
	f.String("tag", "", "only recordings with this `tag`")
	f.Bool("held", false, "only recordings on hold")
	f.String("flag", "", "only recordings with this `flag`: "+strings.Join(levels.FlagNames(), ", "))
}

// A day is a flag value: a date, stored as midnight UTC.
type day time.Time

// Set parses a day.
func (d *day) Set(text string) error {
	midnight, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return errors.New("needs a day, such as 2030-01-31")
	}
	*d = day(midnight)
	return nil
}

// Type returns the name of the type for the help.
func (d *day) Type() string { return "day" }

func (d *day) String() string {
	if time.Time(*d).IsZero() {
		return ""
	}
	return time.Time(*d).Format(time.DateOnly)
}

func listRecordings(ctx context.Context, a *app, cmd *cobra.Command) ([]recordings.Recording, error) {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return nil, err
	}
	filter, err := flagRecordingFilter(cmd)
	if err != nil {
		return nil, err
	}
	filter.ProjectID = p.ID
	return page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[recordings.Recording], error) {
		return a.Recordings.List(ctx, filter, q)
	})
}

// flagRecordingFilter returns the filter that the flags describe.
func flagRecordingFilter(cmd *cobra.Command) (filter recordings.Filter, err error) {
	cli.Set(cmd, "call", &filter.CallBegins)
	cli.Set(cmd, "party", &filter.Party)
	cli.Set(cmd, "name", &filter.Name)
	cli.Set(cmd, "conference", &filter.ConferenceSid)
	cli.Set(cmd, "tag", &filter.Tag)
	filter.Held, _ = cmd.Flags().GetBool("held")
	cli.Set(cmd, "direction", &filter.Direction)
	if filter.Direction != "" && !slices.Contains(recordings.Directions, filter.Direction) {
		return filter, cli.Usagef("--direction must be one of %s", strings.Join(recordings.Directions, ", "))
	}

	filter.CreatedFrom = time.Time(*cmd.Flags().Lookup("since").Value.(*day))
	if until := time.Time(*cmd.Flags().Lookup("until").Value.(*day)); !until.IsZero() {
		filter.CreatedBefore = until.AddDate(0, 0, 1)
	}
	filter.DurationFrom, _ = cmd.Flags().GetDuration("longer")
	filter.DurationBefore, _ = cmd.Flags().GetDuration("shorter")

	if name, _ := cmd.Flags().GetString("flag"); name != "" {
		flag, ok := levels.FlagOf(name)
		if !ok {
			return filter, cli.Usagef("--flag must be one of %s", strings.Join(levels.FlagNames(), ", "))
		}
		filter.Flag = flag
	}
	return filter, nil
}
