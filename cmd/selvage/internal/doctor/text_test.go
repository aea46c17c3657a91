package doctor

import (
	"encoding/json"
	"testing"
)

// TestText shows that commands format findings in English, with their values.
func TestText(t *testing.T) {
	f := warnedf(textf("choose another address with %s", "--listen"), "%s of %s free", 1, "2 GiB")
	f.Found = f.Found.and("(each connection counts as one)")
	for _, tt := range []struct {
		finding Finding
		want    string
	}{
		{f, `{"group":"","name":"","status":"warning","found":"1 of 2 GiB free (each connection counts as one)",` +
			`"remedy":"choose another address with --listen"}`},
		{finef("%s", "100 % of\x1fit"), `{"group":"","name":"","status":"ok","found":"100 % ofit"}`},
	} {
		if got, err := json.Marshal(tt.finding); err != nil || string(got) != tt.want {
			t.Errorf("a finding is %s, %v; want %s", got, err, tt.want)
		}
	}
}
