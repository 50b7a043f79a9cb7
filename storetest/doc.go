// Package storetest has the tests that every store passes: [Quota] for what implements
// quota.Store, [Memory] for what implements store.Facts.
//
// Time does not pass by itself in them. A harness says how the clock that the store
// goes by is read and moved: one that was injected into it, or that of a server that
// lets its clock be set. What a store does is compared to the microsecond.
package storetest
