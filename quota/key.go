package quota

import (
	"fmt"
	"reflect"
	"strconv"
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
	var space [64]byte
	key := space[:0]
	for i, part := range parts {
		if i > 0 {
			key = append(key, ':')
		}
		key = appendPart(key, part)
	}
	return string(key)
}

func appendPart(key []byte, part any) []byte {
	switch p := part.(type) {
	case nil:
		return append(key, global...)
	case string:
		return appendText(key, p)
	case []byte:
		return appendText(key, string(p))
	case int:
		return strconv.AppendInt(key, int64(p), 10)
	case int64:
		return strconv.AppendInt(key, p, 10)
	}
	if v := reflect.ValueOf(part); v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return append(key, global...)
		}
		switch part.(type) {
		case fmt.Stringer, error:
		default:
			return appendPart(key, v.Elem().Interface())
		}
	}
	return appendText(key, fmt.Sprint(part))
}

func appendText(key []byte, text string) []byte {
	switch {
	case text == "":
		return append(key, global...)
	case text == global:
		key = append(key, '\\')
	case strings.ContainsAny(text, `:\`):
		for i := range len(text) {
			if text[i] == ':' || text[i] == '\\' {
				key = append(key, '\\')
			}
			key = append(key, text[i])
		}
		return key
	}
	return append(key, text...)
}
