package docsite

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/selvage/selvage/openapi"
)

// setup sets the shell variables that the examples use.
const setup = `export PROJECT_ID=…  # selvage project list
export API_KEY=…     # selvage key create --project "$PROJECT_ID" --scope Voice
export SAT=$(curl -sS -u "$PROJECT_ID:$API_KEY" \
  %s/api/fabric/subscribers/tokens \
  -d reference=ada@example.com | sed 's/.*"token":"\([^"]*\).*/\1/')`

// parameters maps path parameters to their shell variables. The variables of other parameters have the
// same name, in capitals.
var parameters = map[string]string{
	"AccountSid":           "PROJECT_ID",
	"CallSid":              "CALL_SID",
	"ConferenceSid":        "CONFERENCE_SID",
	"fabric_subscriber_id": "SUBSCRIBER_ID",
}

// examples maps values in example bodies to the shell variables that replace them.
var examples = map[string]string{
	"0f6d2f34-1c55-4f0b-bb0e-5a1c6a3d7e12": "ADDRESS_ID",
	"5b2a7c9e-3e1d-4b8a-9c66-7d0f4e2b8a13": "RESOURCE_ID",
	"9a4e6d1b-2c3f-4a5e-8b7d-6c5e4f3a2b14": "SIP_ADDRESS_ID",
	"d4f0c3b2-a1e9-4d8c-b7f6-5a4e3d2c1b17": "SIP_ENDPOINT_ID",
	"acme-dialer":                          "CLIENT_ID",
	"https://dialer.acme.example/cb":       "REDIRECT_URI",
	"c2c_7acc0e5e968706a032983cd80cdca219": "EMBED_KEY",
	"eyJhbGciOiJkaXIi…":                    "REFRESH_TOKEN",
}

// credentials maps security schemes to the curl options that authenticate with them.
var credentials = map[string]string{
	"basic":      `-u "$PROJECT_ID:$API_KEY"`,
	"service":    `-H "Authorization: Bearer $ACCESS_TOKEN"`,
	"login":      `-H "Authorization: Bearer $ACCESS_TOKEN"`,
	"sat":        `-H "Authorization: Bearer $SAT"`,
	"guest":      `-H "Authorization: Bearer $TOKEN"`,
	"invite":     `-H "Authorization: Bearer $TOKEN"`,
	"client":     `-u "$CLIENT_ID:$CLIENT_SECRET"`,
	"registrar":  `-H "Authorization: Bearer $INITIAL_TOKEN"`,
	"registered": `-H "Authorization: Bearer $REGISTRATION_TOKEN"`,
}

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// curl returns the curl command that calls an operation.
func curl(op openapi.Operation) string {
	line := []string{"curl -sS"}
	if m := method(op); m != "" {
		line[0] += " -X " + m
	}

	// The first scheme with credentials is the example.
	for _, scheme := range op.Who {
		if options := credentials[scheme]; options != "" {
			line[0] += " " + options
			break
		}
		if scheme == "none" {
			break
		}
	}

	path := inPath.ReplaceAllStringFunc(op.Path, func(p string) string {
		return "${" + variable(strings.Trim(p, "{}")) + "}"
	})

	line = append(line, shell(op.Server+path))
	for _, p := range op.Parameters {
		switch {
		case p.In != "query":
		case p.Example != "":
			line = append(line, "--data-urlencode "+quote(p.Name+"="+p.Example))
		case p.Required:
			line = append(line, "--data-urlencode "+shell(p.Name+"=${"+strings.ToUpper(p.Name)+"}"))
		}
	}

	hasQuery := len(line) > 2 // more than the command and the URL
	if hasQuery {             // -G makes curl send the parameters in the URL
		line[0] += " -G"
	}

	if len(op.Bodies) > 0 {
		sent := send(op.Bodies[0])
		line = append(line, sent...)
		if len(sent) == 0 {
			line[0] = strings.Replace(line[0], "curl -sS", "curl -sS -X "+op.Method, 1)
		}
	}

	if isMedia(op) {
		line = append(line, "-o recording.wav")
	}
	return strings.Join(line, " \\\n  ")
}

// method returns the method to pass to curl, or "" if curl chooses the right method by itself.
func method(op openapi.Operation) string {
	postsBody := op.Method == "POST" && len(op.Bodies) > 0
	if op.Method == "GET" || postsBody {
		return ""
	}
	return op.Method
}

// variable returns the shell variable for a path parameter.
func variable(name string) string {
	if v := parameters[name]; v != "" {
		return v
	}
	return strings.ToUpper(name)
}

// shell quotes a word for the shell. The word may contain shell variables.
func shell(word string) string {
	if !strings.ContainsAny(word, "${} ") {
		return word
	}
	return `"` + strings.NewReplacer("${", "$", "}", "").Replace(word) + `"`
}

// maxLine is the maximum length of a body that is written on one line.
const maxLine = 48

// send returns the curl options that send a body.
func send(b openapi.Body) []string {
	switch {
	case b.Type == "application/x-www-form-urlencoded":
		var fields []string
		var values map[string]string
		_ = json.Unmarshal([]byte(b.Example), &values) // the values of form examples are strings
		for _, p := range b.Schema.Properties {
			if value := values[p.Name]; value != "" {
				fields = append(fields, "-d "+quote(p.Name+"="+value))
			}
		}
		return fields
	case strings.HasSuffix(b.Type, "json"):
		example := b.Example
		if len(example) > maxLine {
			example = indent(example)
		}
		return []string{"-H 'Content-Type: application/json'", "-d " + quote(example)}
	}

	return []string{"-H 'Content-Type: audio/x-wav'", "--data-binary @recording.wav"}
}

// quote quotes text for the shell and replaces example values with variables.
func quote(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	for value, name := range examples {
		quoted = strings.ReplaceAll(quoted, value, `'"$`+name+`"'`)
	}
	return quoted
}

// isMedia reports whether the response is an audio file.
func isMedia(op openapi.Operation) bool {
	for _, r := range op.Responses {
		for _, b := range r.Bodies {
			if strings.HasPrefix(b.Type, "audio/") {
				return true
			}
		}
	}
	return false
}

// setUp returns the shell lines that set the variables.
func setUp(server string) string { return fmt.Sprintf(setup, server) }
