package classify

import (
	"slices"
	"strings"
)

// A rule gives a category to the names that it fits. Each of its three columns
// holds words with blanks between and fits a name that has one of them; an
// empty column fits every name.
type rule struct {
	category Category
	// namespace is what stands before the dot, "." for a name without one.
	namespace string
	// verb is the first word behind the dot.
	verb string
	// thing is any of the words after the verb.
	thing string
}

// ruleTable returns all rules. The first that fits decides, and the last fits
// everything.
func ruleTable() []rule {
	return []rule{
		// Catching up, and keeping the connection alive.
		{Bulk, "updates", "", ""},
		{Bulk, ".", "ping", ""},

		// Transfers. A part of a file is media though the verb may be "get";
		// the hashes of its parts are not the file.
		{Query, "upload", "get", "hashes"},
		{Media, "upload", "", ""},

		// What only reads: verbs that ask, verbs that compute a text and hand
		// it back, and a name or a link that is told and changes nothing.
		{Account, "payments", "resolve", "offer"}, // takes or declines an offer
		{Query, "", "get search check can is has are find fetch list load count resolve validate", ""},
		{Query, "", "translate summarize transcribe compose", ""},
		{Query, "", "suggest", "name"},
		{Query, "", "export", "link"},

		// What carries a file.
		{Media, "", "upload reupload", ""},
		{Media, "", "send post publish edit add set replace", "media medias photo photos video videos audio voice file files document documents animation music story"},
		{Media, "", "send post create add replace", "sticker"},
		{Media, "", "set", "thumb"},
		{Media, "stories", "start", "live"},

		// What a bot answers with.
		{Message, "messages bots", "set answer", "answer result results query"},
		{Message, "bots", "send invoke request", ""},
		{Message, "payments", "export", "invoice"},

		// The account: its settings, log-ins, contacts and a bot's own
		// settings; money, stickers, profile photos; what its owner keeps for
		// himself among the messages.
		{Account, "account auth contacts bots", "", ""},
		{Account, "aicompose folders help payments photos premium smsjobs stickers", "", ""},
		{Message, "", "send forward", ""},
		{Account, "messages phone", "set save clear", "default recent drafts"},
		{Account, "messages", "", "sticker stickers gif filter filters quick tag menu auth"},
		{Account, "stories", "activate", ""}, // stealth mode

		// What a client tells of what was seen, and marks in somebody's list.
		{Message, "", "read received mark view click increment report", ""},
		{Message, "messages", "add append toggle", "poll todo"},

		// Changes to a chat.
		{Admin, "", "ban unban block unblock kick promote demote restrict approve pin unpin toggle delete remove hide", ""},
		{Admin, "", "create add invite join leave import export migrate convert reorder transfer", ""},
		{Admin, "messages", "", "pinned import"},
		{Admin, "messages", "edit set update", "chat topic invite history"},
		{Admin, "phone", "edit discard start", "group"},
		{Admin, "stories", "update", "album"},

		// Verbs that no rule knows.
		{Admin, "channels communities chatlists", "", ""},
		{Query, "langpack fragment stats test .", "", ""},
		{Message, "", "", ""},
	}
}

// rules is ruleTable made ready for matching.
type rules []matcher

type matcher struct {
	category                  Category
	namespaces, verbs, things []string
}

func newRules() rules {
	table := ruleTable()
	out := make(rules, len(table))
	for i, r := range table {
		out[i] = matcher{r.category, strings.Fields(r.namespace), strings.Fields(r.verb), strings.Fields(r.thing)}
	}
	return out
}

// category returns the category of a function by its name, which need not be
// that of a known function.
func (rs rules) category(method string) Category {
	namespace, words := splitName(method)
	if namespace == "" {
		namespace = "."
	}
	var verb string
	var things []string
	if len(words) > 0 {
		verb, things = words[0], words[1:]
	}
	for _, r := range rs {
		if r.fits(namespace, verb, things) {
			return r.category
		}
	}
	return Message // not reached: the last rule fits everything
}

func (m matcher) fits(namespace, verb string, things []string) bool {
	return (len(m.namespaces) == 0 || slices.Contains(m.namespaces, namespace)) &&
		(len(m.verbs) == 0 || slices.Contains(m.verbs, verb)) &&
		(len(m.things) == 0 || slices.ContainsFunc(things, func(w string) bool {
			return slices.Contains(m.things, w)
		}))
}
