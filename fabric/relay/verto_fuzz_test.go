package relay

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzVerto shows that no message of the verto protocol makes the parser panic, and that its result
// can always be encoded.
func FuzzVerto(f *testing.F) {
	for _, text := range []string{
		`{"callID":"c","message":{"id":1,"method":"verto.invite","params":{"sdp":"v=0","dialogParams":` +
			`{"destination_number":"/public/echo","userVariables":{"memberId":"m"},"screenShare":true}}}}`,
		`{"message":{"id":{"a":[1e999]},"method":"verto.modify","params":{"action":"updateMedia"}}}`,
		`{"message":{"method":"verto.info","params":{"dtmf":"` + strings.Repeat("1", 30_000) + `"}}}`,
		`{"message":{"id":` + strings.Repeat("[", 9_000) + `}}`, `{"message":{"id":"\ud800"}}`, "null",
		`{"message":[]}`,
		"{" + strings.Repeat(`"callID":"",`, 4_000) + `"callID":"x"}`,
	} {
		f.Add([]byte(text))
	}

	bound := fuzzcost.Bound{CPU: 2 * time.Millisecond, CPUPerByte: time.Microsecond, Heap: 128 << 10, PerByte: 64}
	f.Fuzz(func(t *testing.T, text []byte) {
		bound.Check(t, len(text), func() {
			var in vertoParams
			if decodeParams(text, &in) != nil {
				return
			}
			cmd, confirmation, ok := in.command()
			if ok && cmd.Op == "" {
				t.Errorf("%s is a command without an operation", text)
			}
			reply := vertoReply(in, "n", vertoOutcome{Message: confirmation})
			if _, err := json.Marshal(reply); err != nil {
				t.Errorf("%s has a result that cannot be written: %v", text, err)
			}
		})
	})
}
