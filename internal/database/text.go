package database

import (
	"database/sql"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/selvage/selvage/internal/problem"
)

// fit refuses arguments with text that PostgreSQL would refuse, so that every
// database does: what is no UTF-8, or has a NUL.
func fit(args []any) error {
	for _, arg := range args {
		var text string
		switch v := arg.(type) {
		case string:
			text = v
		case sql.NullString:
			text = v.String
		case *string:
			if v != nil {
				text = *v
			}
		case nil, int, int64, []byte:
		default:
			if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
				text = v.String()
			}
		}
		if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
			return problem.New(problem.Malformed, "malformed_text", "text is not UTF-8, or has a NUL")
		}
	}
	return nil
}
