package levels_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/recordings/levels"
)

func TestFactsAsJSON(t *testing.T) {
	facts, _ := measure(t, open(t, "silence.wav"))
	text, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"peak_db":null,"rms_db":null,"lufs":null,"clipped":0,"dc_offset":0,"talk_s":[0],"overlap_s":null,` +
		`"silence_ratio":1,"longest_silence_s":3,"first_speech_s":null,"flags":["silent"]}`
	if string(text) != want {
		t.Errorf("facts of silence = %s\nwant %s", text, want)
	}

	var back levels.Facts
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(facts, back); diff != "" {
		t.Errorf("the facts after a round trip differ (-want +got):\n%s", diff)
	}
	if err := json.Unmarshal([]byte(`{"flags":["x"]}`), &back); err == nil {
		t.Error("an unknown flag is accepted")
	}
}

func TestFactsAsText(t *testing.T) {
	files := []string{
		"silence.wav", "speech_stereo_8k.wav", "one_sample.wav", "clipped_dc.wav", "four_channels.wav",
	}
	for _, file := range files {
		facts, _ := measure(t, open(t, file))
		text := facts.Text()
		back, err := levels.ParseText(text)
		if err != nil {
			t.Errorf("%s: ParseText(%q): %v", file, text, err)
		}
		if diff := cmp.Diff(facts, back); diff != "" {
			t.Errorf("%s: ParseText(%q) differs (-want +got):\n%s", file, text, diff)
		}
		for i := range text {
			_, _ = levels.ParseText(text[:i]) // must not panic
		}
	}

	bad := []string{
		"",
		"{}",
		"2 0 1 1 1 1 1 1 1 1 1",
		"1 256 1 1 1 1 1 1 1 1 1",
		"1 0 1 1 1 1 1 1 1 1",
		"1 0 1 1 1 1 1 x 1 1 1 1",
	}
	for _, text := range bad {
		if facts, err := levels.ParseText(text); err == nil {
			t.Errorf("ParseText(%q) = %+v, want an error", text, facts)
		}
	}
}
