package quota

import (
	"fmt"
	"reflect"
	"strings"
)

// global stands for an empty part: a count that is shared by all members, or by all
// chats.
const global = "global"

// Key joins parts with ":" to a key. Different parts make different keys.
//
//	Key("award", chatID, userID)   award:-100123:456
//	Key("award", chatID, "")       award:-100123:global
//
// A part is formatted as fmt.Sprint does, so 7 and "7" are the same. A pointer that is
// neither a fmt.Stringer nor an error stands for the value it points to. A part that is
// nil or formatted to nothing becomes "global", and so does a Key without parts. 0 is
// not empty.
//
// Key escapes ":" and "\" in a part with a backslash, and puts one before a part that is
// the word "global", so that a user of that name has a count of their own.
//
// Key does not limit the length of the key. Charges accept up to [MaxKey] bytes.
func Key(parts ...any) string {
	if len(parts) == 0 {
		return global
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = escape(text(part))
	}
	return strings.Join(texts, ":")
}

// text formats a part. It is empty for nil.
func text(part any) string {
	switch part := part.(type) {
	case nil:
		return ""
	case []byte:
		return string(part)
	}
	if v := reflect.ValueOf(part); v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		switch part.(type) {
		case fmt.Stringer, error:
		default:
			return text(v.Elem().Interface())
		}
	}
	return fmt.Sprint(part)
}

func escape(text string) string {
	switch text {
	case "":
		return global
	case global:
		return `\` + global
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), ":", `\:`)
}
