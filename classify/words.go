package classify

import "strings"

// splitName splits a TL name into its namespace, "" if there is none, and the
// words of the rest, all in lower case:
//
//	messages.getForumTopicsByID → "messages", [get forum topics by id]
//
// A capital begins a word. Capitals in a row are one word, save the last of
// them when a word goes on after it: JSONQuery is json and query. An "s" that ends
// such a row is its plural: IDs is one word. A digit belongs to the word
// before it, and an underscore, as in mtproto's ping_delay_disconnect, parts
// words too.
func splitName(method string) (namespace string, words []string) {
	rest := method
	if before, after, ok := strings.Cut(method, "."); ok {
		namespace, rest = strings.ToLower(before), after
	}
	start := 0
	for i := 0; i <= len(rest); i++ {
		if i < len(rest) && !beginsWord(rest, i) {
			continue
		}
		if word := strings.Trim(rest[start:i], "_."); word != "" {
			words = append(words, strings.ToLower(word))
		}
		start = i
	}
	return namespace, words
}

// beginsWord reports whether a word begins at s[i].
func beginsWord(s string, i int) bool {
	switch {
	case i == 0:
		return false
	case s[i] == '_' || s[i] == '.':
		return true
	case !isUpper(s[i]):
		return false
	case !isUpper(s[i-1]) && !isDigit(s[i-1]):
		return true
	}
	// In a row of capitals (and digits: P2P): a word begins at the last of
	// them, if small letters follow that are more than a plural's s.
	return i+1 < len(s) && isLower(s[i+1]) && !isPlural(s[i+1:])
}

// isPlural reports whether s begins with an s that ends its word.
func isPlural(s string) bool {
	return s[0] == 's' && (len(s) == 1 || !isLower(s[1]))
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
