package command

import (
	"context"
	"errors"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
	"github.com/spf13/cobra"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
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
			StartTime     cli.Time          `json:"start_time,omitempty"`
			CreatedAt     cli.Time          `json:"created_at"`
		}{
			r.Sid, r.ProjectID, r.CallSid, r.ConferenceSid, r.From, r.To, r.Direction, r.Source, r.Track,
			r.Status, r.Duration().Seconds(),
			r.Codec, r.SampleRate, r.Channels, r.Bytes, r.SHA256, r.Repairs, r.Levels, cli.UTC(r.StartTime),
			cli.UTC(r.Created),
		}
	},
	Facts: []cli.Fact[recordings.Recording]{
		{Name: "Sid", Value: func(r recordings.Recording) string { return r.Sid }},
		{Name: "Project", Detail: true, Value: func(r recordings.Recording) string { return r.ProjectID }},
		{Name: "Status", Value: func(r recordings.Recording) string { return string(r.Status) }},
		{Name: "Length", Value: func(r recordings.Recording) string { return heard(r, length(r.Duration())) }},
		{Name: "Created", Minor: true, Value: func(r recordings.Recording) string { return cli.FormatTime(r.Created) }},
		{Name: "Started", Detail: true, Value: func(r recordings.Recording) string { return cli.FormatTime(r.StartTime) }},
		{Name: "From", Value: func(r recordings.Recording) string { return r.From }},
		{Name: "To", Value: func(r recordings.Recording) string { return r.To }},
		{Name: "Call", Detail: true, Value: func(r recordings.Recording) string { return r.CallSid }},
		{Name: "Conference", Detail: true, Value: func(r recordings.Recording) string { return r.ConferenceSid }},
		{Name: "Direction", Detail: true, Value: func(r recordings.Recording) string { return r.Direction }},
		{Name: "Size", Value: func(r recordings.Recording) string { return heard(r, bytesOf(r.Bytes)) }},
		{Name: "Format", Detail: true, Value: audioFormat},
		{Name: "SHA-256", Detail: true, Value: func(r recordings.Recording) string { return r.SHA256 }},
		{Name: "Repairs", Detail: true, Value: func(r recordings.Recording) string { return cli.Lines(r.Repairs) }},
		{Name: "Flags", Value: measured(func(l *levels.Facts) string { return strings.Join(l.Flags.Names(), " ") })},
		{Name: "Level", Detail: true, Value: measured(loudness)},
		{Name: "Talk", Detail: true, Value: measured(talk)},
		{Name: "Silence", Detail: true, Value: measured(silence)},
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

func (c *commands) recordingCommand() *cobra.Command {
	imports := cli.Command("import PATH…", "Store files of audio, and those in directories", c.withMedia(c.importRecordings))
	imports.Flags().String("call-sid", "", "`id` of the call that was recorded")
	imports.Flags().String("subscriber", "", "`id` of the subscriber whose recordings they are")
	ls := &cobra.Command{Use: "list", Short: "List the recordings of a project, newest first",
		Args: cli.NoArguments, RunE: c.withMedia(c.listRecordings)}
	ls.Flags().String("call", "", "only those of calls whose ids begin with `text`, by these ids")
	ls.Flags().String("party", "", "only those of whoever called or was called: a `number`, or an address")
	ls.Flags().String("flag", "", "only those that are `flag`: "+strings.Join(levels.FlagNames(), ", "))
	show := cli.Command("show SID", "Show a recording", c.withMedia(c.showRecording))
	download := &cobra.Command{
		Use: "download SID [FILE]", Short: "Write a recording's bytes to a file, as they came",
		Args: cli.Arguments("SID", "[FILE]"), RunE: c.withMedia(c.downloadRecording),
		Long: "Writes the bytes of a recording to FILE, as they came; - is stdout. Without FILE it is named by the Sid and by what it is: SID.wav, SID.mp3.",
	}
	download.Flags().String("to", "", "`file` to write, as FILE")
	remove := cli.Command("delete SID", "Delete a recording; a stub of it stays for 40 days", c.withMedia(c.deleteRecording))
	cli.AddYes(remove)
	link := c.linkCommand()
	for _, cmd := range []*cobra.Command{imports, ls, show, download, remove, link} {
		addProject(cmd)
	}
	return cli.Noun("recording", "Recordings: calls that were recorded", imports, ls, show, download, link, remove)
}

func (c *commands) listRecordings(ctx context.Context, a *app, cmd *cobra.Command, _ []string) error {
	p, err := a.project(ctx, cmd)
	if err != nil {
		return err
	}
	filter := recordings.Filter{Owner: recordings.Owner{ProjectID: p.ID}}
	for name, into := range map[string]*string{"call": &filter.CallBegins, "party": &filter.Party} {
		if given := cli.Text(cmd, name); given != nil {
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
	return cli.List(c.Env, recordingView, found)
}

func (a *app) recording(ctx context.Context, cmd *cobra.Command, sid string) (recordings.Recording, error) {
	return among(ctx, a, cmd, func(projectID string) (recordings.Recording, error) {
		return a.Recordings.Find(ctx, recordings.Owner{ProjectID: projectID}, sid)
	})
}

func (c *commands) showRecording(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.recording(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	return cli.Show(c.Env, recordingView, r)
}

func (c *commands) deleteRecording(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.recording(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	if err := c.Confirm(cmd, "This deletes the recording "+r.Sid+".", r.Sid); err != nil {
		return err
	}
	return a.Recordings.Delete(ctx, r.ProjectID, r.Sid)
}

func (c *commands) downloadRecording(ctx context.Context, a *app, cmd *cobra.Command, args []string) error {
	r, err := a.recording(ctx, cmd, args[0])
	if err != nil {
		return err
	}
	name, _ := cmd.Flags().GetString("to")
	if len(args) > 1 && name != "" {
		return cli.Usagef("FILE and --to say the same: give one of them")
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
		_, err := io.Copy(c.Stdout, media.Content)
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
	_, err = fmt.Fprintln(c.Stdout, name)
	return err
}

// measured writes something of how a recording sounds, if that is known.
func measured(write func(l *levels.Facts) string) func(recordings.Recording) string {
	return func(r recordings.Recording) string {
		if r.Levels == nil {
			return ""
		}
		return write(r.Levels)
	}
}

func loudness(l *levels.Facts) string {
	if l.Peak == nil {
		return "none: every sample is zero"
	}
	said := []string{fmt.Sprintf("peak %.1f dB", *l.Peak), fmt.Sprintf("RMS %.1f dB", *l.RMS)}
	if l.Loudness != nil {
		said = append([]string{fmt.Sprintf("%.1f LUFS", *l.Loudness)}, said...)
	}
	if l.Clipped > 0 {
		said = append(said, fmt.Sprintf("%.2g%% clipped", l.Clipped*100))
	}
	if math.Abs(l.DCOffset) >= 0.01 {
		said = append(said, fmt.Sprintf("DC offset %.0f%%", l.DCOffset*100))
	}
	return strings.Join(said, ", ")
}

// talk writes who talks for how long, in the order of the channels.
func talk(l *levels.Facts) string {
	if l.FirstSpeech == nil {
		return "nobody talks"
	}
	said := make([]string, len(l.Talk))
	for i, t := range l.Talk {
		said[i] = seconds(t)
	}
	text := strings.Join(said, " and ")
	if l.Overlap != nil && *l.Overlap > 0 {
		text += ", " + seconds(*l.Overlap) + " of it at once"
	}
	return text + ", from " + seconds(*l.FirstSpeech) + " on"
}

func silence(l *levels.Facts) string {
	return fmt.Sprintf("%.0f%% of the time, %s at most", l.SilenceRatio*100, seconds(l.LongestSilence))
}

func seconds(s float64) string { return length(time.Duration(s * float64(time.Second))) }
