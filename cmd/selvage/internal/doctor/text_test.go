package doctor

import (
	"encoding/json"
	"testing"
)

// TestText shows that commands format findings in English, with their values.
func TestText(t *testing.T) {
	f := warnedf("%s of %s free", 1, "2 GiB").withRemedy(textf("choose another address with %s", "--listen"))
	f.Found = f.Found.and("(each connection counts as one)")
	tests := []struct {
		finding Finding
		want    string
	}{
		{
			finding: f,
			want: `{"group":"","name":"","status":"warning",` +
				`"found":"1 of 2 GiB free (each connection counts as one)",` +
				`"remedy":"choose another address with --listen"}`,
		},
		{
			finding: finef("%s", "100 % of\x1fit"),
			want:    `{"group":"","name":"","status":"ok","found":"100 % ofit"}`,
		},
	}

	for _, tt := range tests {
		got, err := json.Marshal(tt.finding)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != tt.want {
			t.Errorf("a finding is %s, want %s", got, tt.want)
		}
	}
}
