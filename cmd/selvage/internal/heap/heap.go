// Package heap has garbage collected less often than Go does by itself, from where a
// process begins: tables that packages make for themselves would else be looked through
// three times before the first command runs, which takes longer than to make them.
package heap

import (
	"os"
	"runtime/debug"
)

// percent lets the heap grow to five times what lives in it before it is collected. What
// lives is a few megabytes, so this costs little memory and saves a fifth of the processor
// time of a request.
const percent = 400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
