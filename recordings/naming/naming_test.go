package naming_test

import (
	"testing"
	"time"

	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/naming"
)

func at(text string) time.Time {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestPresets(t *testing.T) {
	for _, tt := range []struct {
		preset, path string
		want         recordings.Metadata
		no           bool
	}{
		{"fusionpbx", "/recordings/pbx.example.com/archive/2026/Nov/20/6f1de2a4-0c5a-4b0c-8f57-3b9b1c7a9e10.wav",
			recordings.Metadata{CallSid: "6f1de2a4-0c5a-4b0c-8f57-3b9b1c7a9e10"}, false},
		{"fusionpbx", "6f1de2a4-0c5a-4b0c-8f57-3b9b1c7a9e10.mp3",
			recordings.Metadata{CallSid: "6f1de2a4-0c5a-4b0c-8f57-3b9b1c7a9e10"}, false},
		{"fusionpbx", "greeting.wav", recordings.Metadata{}, true},

		{"asterisk-monitor", "/monitor/2026/11/20/out-14155550134-1000-20261120-101112-1763633472.123.wav",
			recordings.Metadata{CallSid: "1763633472.123", From: "1000", To: "14155550134", Direction: "outbound",
				StartTime: at("2026-11-20 10:11:12")}, false},
		{"asterisk-monitor", "in-1000-+14155550134-20261120-101112-1763633472.123.wav",
			recordings.Metadata{CallSid: "1763633472.123", From: "+14155550134", To: "1000", Direction: "inbound",
				StartTime: at("2026-11-20 10:11:12")}, false},
		{"asterisk-monitor", "1763803200.42.WAV", recordings.Metadata{CallSid: "1763803200.42"}, false},

		{"rtpengine", "/var/lib/rtpengine/a84b4c76e66710%40pc33.example.com-4f2a17b9c06d31e8-mix.wav",
			recordings.Metadata{CallSid: "a84b4c76e66710@pc33.example.com", Track: "both"}, false},
		{"rtpengine", "a84b4c76e66710%40pc33-mix.wav",
			recordings.Metadata{CallSid: "a84b4c76e66710@pc33", Track: "both"}, false},
		{"jambonz", "bucket/2026/11/20/8b7c1d2e.mp3", recordings.Metadata{CallSid: "8b7c1d2e"}, false},
		{"kazoo", "call_recording_1d2b7c0e.wav", recordings.Metadata{CallSid: "1d2b7c0e"}, false},
		{"livekit", "out/standup-2026-11-20T101112.ogg",
			recordings.Metadata{ConferenceSid: "standup", StartTime: at("2026-11-20 10:11:12")}, false},
	} {
		patterns, err := naming.Preset(tt.preset)
		if err != nil {
			t.Fatal(err)
		}
		var d recordings.Description
		if found := patterns.Describe(tt.path, &d); found == tt.no || d.Metadata != tt.want {
			t.Errorf("%s: Describe(%q) = %v, %+v, want %+v", tt.preset, tt.path, found, d.Metadata, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	p, err := naming.Parse("{from}_{to}/{epoch}.{ext}")
	if err != nil {
		t.Fatal(err)
	}

	d := recordings.Description{Metadata: recordings.Metadata{From: "given"}}
	if !(naming.Patterns{p}).Describe("x/1000_+1555/1763633472.5.wav", &d) || d.From != "given" || d.To != "+1555" ||
		!d.StartTime.Equal(time.UnixMilli(1763633472500)) {
		t.Errorf("Describe = %+v, want the given caller, the rest of the name", d.Metadata)
	}

	for _, bad := range []string{"{nothing}.wav", "{call}-{call}.wav"} {
		if _, err := naming.Parse(bad); err == nil {
			t.Errorf("Parse(%q) succeeds", bad)
		}
	}

	if _, err := naming.Preset("unknown"); err == nil {
		t.Error("an unknown preset is accepted")
	}
}

func TestReadSidecar(t *testing.T) {
	for _, tt := range []struct {
		text string
		want recordings.Metadata
	}{
		{`{"call_sid":"c","from":"+1","to":"+2","direction":"inbound","start_time":"Fri, 20 Nov 2026 10:11:12 +0000"}`,
			recordings.Metadata{CallSid: "c", From: "+1", To: "+2", Direction: "inbound",
				StartTime: at("2026-11-20 10:11:12")}},
		{`{"callSid":"8b7c","callId":"x@y","from":"+1","to":"1000","direction":"outbound","sampleRate":8000}`,
			recordings.Metadata{CallSid: "8b7c", From: "+1", To: "1000", Direction: "outbound"}},
		{`{"egress_id":"EG_1","room_id":"RM_1","room_name":"standup","started_at":1795169472000000000,"files":[]}`,
			recordings.Metadata{ConferenceSid: "standup", StartTime: at("2026-11-20 10:11:12")}},
		{`{"call_sid":"c","start_time":"Inf"}`, recordings.Metadata{CallSid: "c"}},
		{`{"call_sid":"c","start_time":"NaN"}`, recordings.Metadata{CallSid: "c"}},
		{`{}`, recordings.Metadata{}},
	} {
		var d recordings.Description
		if err := naming.ReadSidecar([]byte(tt.text), &d); err != nil || d.Metadata != tt.want {
			t.Errorf("ReadSidecar(%s) = %+v, %v, want %+v", tt.text, d.Metadata, err, tt.want)
		}
	}

	var d recordings.Description
	if err := naming.ReadSidecar([]byte("[]"), &d); err == nil {
		t.Error("a sidecar that is not an object is accepted")
	}
}
