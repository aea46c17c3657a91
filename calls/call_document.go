package calls

import (
	"math"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
)

// A Document is a call as shown by webhooks, the command line and the API.
type Document struct {
	ID           string  `json:"id"`
	ProjectID    string  `json:"project_id"`
	State        State   `json:"state"`
	Cause        string  `json:"cause,omitempty"`
	Reason       string  `json:"reason,omitempty"` // the rule that a refused call broke
	From         string  `json:"from"`
	FromName     string  `json:"from_name"`
	FromID       string  `json:"from_subscriber_id,omitempty"`
	To           string  `json:"to"`
	ToName       string  `json:"to_name"`
	ToID         string  `json:"to_subscriber_id,omitempty"`
	Dialed       string  `json:"dialed,omitempty"` // the dialed address, if it differs from To
	Video        bool    `json:"video"`
	GatewayID    string  `json:"gateway_id,omitempty"`
	RoomSession  string  `json:"room_session_id,omitempty"`
	RecordingSid string  `json:"recording_sid,omitempty"`
	CreatedAt    string  `json:"created_at"`
	AnsweredAt   *string `json:"answered_at"`
	EndedAt      *string `json:"ended_at"`
	Duration     int     `json:"duration"` // seconds between answer and end
	Quality      *Report `json:"quality,omitempty"`
}

// A Report describes the quality of the caller's media. Only a call that has ended and has received
// media has a report.
type Report struct {
	Transport   string  `json:"transport"`
	Packets     int64   `json:"packets"`
	Lost        int64   `json:"lost"`
	JitterMs    float64 `json:"jitter_ms"`
	RoundTripMs float64 `json:"round_trip_ms"`
	MOS         float64 `json:"mos"` // estimated mean opinion score, 1 to 4.5
}

// Document returns the call's Document.
func (r Record) Document() Document {
	d := Document{
		ID:           r.ID,
		ProjectID:    r.ProjectID,
		State:        r.State,
		Cause:        r.Cause.Text,
		Reason:       r.Refusal,
		From:         r.From.Address,
		FromName:     r.From.Name,
		FromID:       r.From.SubscriberID,
		To:           r.To.Address,
		ToName:       r.To.Name,
		ToID:         r.To.SubscriberID,
		Dialed:       r.dialedElsewhere(),
		Video:        r.Video,
		GatewayID:    r.Gateway,
		RoomSession:  r.RoomSession,
		RecordingSid: r.RecordingSid,
		CreatedAt:    instant(r.Created),
		AnsweredAt:   instantOrNil(r.Answered),
		EndedAt:      instantOrNil(r.Ended),
		Duration:     int(r.Duration(time.Now()).Round(time.Second).Seconds()),
	}

	if r.State == Completed && r.Received > 0 {
		d.Quality = &Report{
			Transport:   r.Transport,
			Packets:     r.Received,
			Lost:        r.Lost,
			JitterMs:    milliseconds(r.Jitter),
			RoundTripMs: milliseconds(r.RoundTrip),
			MOS:         r.mos(),
		}
	}
	return d
}

// dialedElsewhere returns the address that the caller dialed, or "" if it is the one in To.
func (r Record) dialedElsewhere() string {
	path, _, _ := strings.Cut(r.Dialed, "?")
	if path == r.To.Address {
		return ""
	}
	return path
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// instantOrNil is like instant, but returns nil for the zero time.
func instantOrNil(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := instant(t)
	return &text
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// mos estimates the mean opinion score with the E-model (ITU-T G.107). It considers only delay and
// loss, and approximates their effects in the way that call-monitoring tools usually do.
func (r Record) mos() float64 {
	const (
		bestRating     = 93.2 // the E-model's rating factor R for its default parameters
		frame          = 20   // milliseconds of audio in an Opus packet
		ratingPerLoss  = 2.5  // per percent of lost packets
		noticeable     = 160  // milliseconds of delay after which people begin to interrupt each other
		jitterBuffered = 2    // the jitter buffer holds about twice the jitter
	)

	delay := milliseconds(r.RoundTrip)/2 + jitterBuffered*milliseconds(r.Jitter) + frame
	rating := bestRating - delay/40
	if delay > noticeable {
		rating = bestRating - (delay-120)/10 // a steeper slope from the same point
	}
	loss := 100 * float64(r.Lost) / float64(r.Received+r.Lost)
	rating = min(max(rating-ratingPerLoss*loss, 0), 100)

	// The score for a rating is defined in annex B of G.107.
	score := 1 + 0.035*rating + rating*(rating-60)*(100-rating)*7e-6
	return math.Round(score*100) / 100
}

// EventOf returns the name of the webhook event for s.
func EventOf(s State) fabric.EventName { return fabric.EventName("call." + string(s)) }

// Event returns the webhook event for the call's present state.
func (r Record) Event() (fabric.Event, error) {
	at := r.Created
	switch r.State {
	case InCall:
		at = r.Answered
	case Completed:
		at = r.Ended
	}
	return fabric.NewEvent(EventOf(r.State), r.ProjectID, r.ID, at, r.webhookDocument())
}

// A RecordingReport is the data of [fabric.CallRecordingCompleted].
type RecordingReport struct {
	Document
	Recording ReportedRecording `json:"recording"`
}

// A ReportedRecording is a recording that is ready to be fetched.
type ReportedRecording struct {
	Sid      string  `json:"sid"`      // the beginning of the Sid
	Duration float64 `json:"duration"` // seconds
}

// RecordingEvent returns the webhook event for a recording of the call. The recording was completed
// at the given time.
func (r Record) RecordingEvent(sid string, length time.Duration, at time.Time) (fabric.Event, error) {
	return fabric.NewEvent(fabric.CallRecordingCompleted, r.ProjectID, r.ID, at,
		RecordingReport{r.webhookDocument(), ReportedRecording{fabric.HideSid(sid), length.Seconds()}})
}

// webhookDocument returns the call as webhooks receive it. A complete Sid may be enough to fetch the
// media, and webhooks need no scope for recordings, so they receive only its beginning.
func (r Record) webhookDocument() Document {
	d := r.Document()
	if d.RecordingSid != "" {
		d.RecordingSid = fabric.HideSid(d.RecordingSid)
	}
	return d
}
