package localdc

import (
	"github.com/gotd/td/bin"
)

// on makes a method of a handler of one request type.
func on[R bin.Object](handle func(*call, R) (bin.Encoder, error)) (uint32, method) {
	var r R // a nil pointer, which knows its type id all the same
	id := any(r).(interface{ TypeID() uint32 }).TypeID()
	return id, method{handle: func(c *call, o bin.Object) (bin.Encoder, error) { return handle(c, o.(R)) }}
}

// table lists everything that is answered.
func (c *Cloud) table() map[uint32]method {
	t := map[uint32]method{}
	add := func(m method) func(uint32, method) {
		return func(id uint32, answer method) {
			m.handle = answer.handle
			t[id] = m
		}
	}
	open := add(method{open: true})
	home := add(method{})
	anywhere := add(method{anywhere: true})
	reads := add(method{kind: Reads})
	readsAnywhere := add(method{kind: Reads, anywhere: true})
	writes := add(method{kind: Writes})
	parts := add(method{kind: Parts, anywhere: true})
	cdn := add(method{kind: Parts, open: true, cdn: true})

	open(on((*call).getConfig))
	open(on((*call).getNearestDC))
	open(on((*call).getCDNConfig))
	open(on((*call).importBotAuthorization))
	open(on((*call).importAuthorization))
	open(on((*call).exportLoginToken))
	open(on((*call).importLoginToken))
	home(on((*call).exportAuthorization))
	anywhere(on((*call).logOut))

	readsAnywhere(on((*call).getUsers))
	reads(on((*call).getFullUser))
	reads(on((*call).resolveUsername))
	writes(on((*call).setBotCommands))
	reads(on((*call).getBotCommands))
	reads(on((*call).getChannels))
	writes(on((*call).editBanned))

	reads(on((*call).getState))
	reads(on((*call).getDifference))
	reads(on((*call).getChannelDifference))

	writes(on((*call).sendMessage))
	writes(on((*call).editMessage))
	writes(on((*call).forwardMessages))
	writes(on((*call).deleteMessages))
	writes(on((*call).deleteChannelMessages))
	reads(on((*call).getHistory))
	reads(on((*call).getMessages))
	reads(on((*call).getChannelMessages))
	writes(on((*call).setTyping))
	writes(on((*call).updatePinnedMessage))
	writes(on((*call).setBotCallbackAnswer))

	writes(on((*call).uploadMedia))
	writes(on((*call).sendMedia))
	writes(on((*call).sendMultiMedia))
	parts(on((*call).saveFilePart))
	parts(on((*call).saveBigFilePart))
	parts(on((*call).getFile))
	readsAnywhere(on((*call).getFileHashes))
	readsAnywhere(on((*call).getCDNFileHashes))
	anywhere(on((*call).reuploadCDNFile))
	cdn(on((*call).getCDNFile))
	return t
}
