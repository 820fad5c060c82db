#include "proto/schema.h"

#include "proto/maxima.h"
#include "proto/ropewalk/v1/command.pb.h"

// nanopb 0.4.7 leaves out the type of some enum fields.
#ifndef rw_pb_BatchAdvanceResult_EntryError_status_ENUMTYPE
#define rw_pb_BatchAdvanceResult_EntryError_status_ENUMTYPE rw_pb_Status_Code
#endif
#ifndef rw_pb_Response_status_ENUMTYPE
#define rw_pb_Response_status_ENUMTYPE rw_pb_Status_Code
#endif
#ifndef rw_pb_Event_SessionChanged_state_ENUMTYPE
#define rw_pb_Event_SessionChanged_state_ENUMTYPE rw_pb_SessionState_Kind
#endif

// nanopb's field lists call X(message, STATIC | CALLBACK, SINGULAR | OPTIONAL | REPEATED | ONEOF,
// kind, name, tag), where the name of a ONEOF is the triple (choice, member, choice.member).
#define SCHEMA_PASTE_(a, b) a##b
#define SCHEMA_PASTE(a, b) SCHEMA_PASTE_(a, b)
#define SCHEMA_UNPACK(...) __VA_ARGS__
#define SCHEMA_CALL(macro, ...) macro(__VA_ARGS__)

#define SCHEMA_NAME_SINGULAR(name) #name
#define SCHEMA_NAME_OPTIONAL(name) #name
#define SCHEMA_NAME_REPEATED(name) #name
#define SCHEMA_NAME_ONEOF(triple) SCHEMA_CALL(SCHEMA_NAME_3, SCHEMA_UNPACK triple)
#define SCHEMA_NAME_3(choice, member, path) #member

// nanopb's macro about a field: message_name_SUFFIX or message_choice_member_SUFFIX. Pasted in one go,
// since message_name alone may be a macro itself (a field called "fields").
#define SCHEMA_ABOUT_SINGULAR(message, name, suffix) message##_##name##suffix
#define SCHEMA_ABOUT_OPTIONAL(message, name, suffix) message##_##name##suffix
#define SCHEMA_ABOUT_REPEATED(message, name, suffix) message##_##name##suffix
#define SCHEMA_ABOUT_ONEOF(message, triple, suffix)                                                \
    SCHEMA_CALL(SCHEMA_ABOUT_5, message, suffix, SCHEMA_UNPACK triple)
#define SCHEMA_ABOUT_5(message, suffix, choice, member, path) message##_##choice##_##member##suffix

// Storage size of a member; a repeated one's count.
#define SCHEMA_MEMBER(message, path) (((message*)NULL)->path)
#define SCHEMA_STORED_SINGULAR(message, name) (sizeof SCHEMA_MEMBER(message, name) - 1)
#define SCHEMA_STORED_OPTIONAL(message, name) (sizeof SCHEMA_MEMBER(message, name) - 1)
#define SCHEMA_STORED_REPEATED(message, name)                                                      \
    (sizeof SCHEMA_MEMBER(message, name) / sizeof SCHEMA_MEMBER(message, name)[0])
#define SCHEMA_STORED_ONEOF(message, triple)                                                       \
    SCHEMA_CALL(SCHEMA_STORED_4, message, SCHEMA_UNPACK triple)
#define SCHEMA_STORED_4(message, choice, member, path) (sizeof SCHEMA_MEMBER(message, path) - 1)

#define SCHEMA_MAX_STATIC(shape, message, name) SCHEMA_STORED_##shape(message, name)
#define SCHEMA_MAX_CALLBACK(shape, message, name)                                                  \
    SCHEMA_PASTE(RW_MAX_, SCHEMA_ABOUT_##shape(message, name, _))

#define SCHEMA_VIEW_STATIC 0
#define SCHEMA_VIEW_CALLBACK 1

#define SCHEMA_CHOICE_SINGULAR(message, name) 0
#define SCHEMA_CHOICE_OPTIONAL(message, name) 0
#define SCHEMA_CHOICE_REPEATED(message, name) 0
#define SCHEMA_CHOICE_ONEOF(message, triple)                                                       \
    SCHEMA_CALL(SCHEMA_CHOICE_4, message, SCHEMA_UNPACK triple)
#define SCHEMA_CHOICE_4(message, choice, member, path) (offsetof(message, which_##choice) + 1)

#define SCHEMA_OFFSET_SINGULAR(message, name) offsetof(message, name)
#define SCHEMA_OFFSET_OPTIONAL(message, name) offsetof(message, name)
#define SCHEMA_OFFSET_REPEATED(message, name) offsetof(message, name)
#define SCHEMA_OFFSET_ONEOF(message, triple)                                                       \
    SCHEMA_CALL(SCHEMA_OFFSET_4, message, SCHEMA_UNPACK triple)
#define SCHEMA_OFFSET_4(message, choice, member, path) offsetof(message, path)

#define SCHEMA_HAS_SINGULAR(message, name) 0
#define SCHEMA_HAS_OPTIONAL(message, name) offsetof(message, has_##name)
#define SCHEMA_HAS_REPEATED(message, name) 0
#define SCHEMA_HAS_ONEOF(message, triple) 0

#define SCHEMA_SUB_DOUBLE(shape, message, name) NULL
#define SCHEMA_SUB_FIXED32(shape, message, name) NULL
#define SCHEMA_SUB_FIXED64(shape, message, name) NULL
#define SCHEMA_SUB_UINT32(shape, message, name) NULL
#define SCHEMA_SUB_UINT64(shape, message, name) NULL
#define SCHEMA_SUB_BOOL(shape, message, name) NULL
#define SCHEMA_SUB_UENUM(shape, message, name) NULL
#define SCHEMA_SUB_STRING(shape, message, name) NULL
#define SCHEMA_SUB_BYTES(shape, message, name) NULL
#define SCHEMA_SUB_MESSAGE(shape, message, name)                                                   \
    &SCHEMA_PASTE(rw_schema_of_, SCHEMA_ABOUT_##shape(message, name, _MSGTYPE))

#define SCHEMA_ENUM_DOUBLE(shape, message, name) 0
#define SCHEMA_ENUM_FIXED32(shape, message, name) 0
#define SCHEMA_ENUM_FIXED64(shape, message, name) 0
#define SCHEMA_ENUM_UINT32(shape, message, name) 0
#define SCHEMA_ENUM_UINT64(shape, message, name) 0
#define SCHEMA_ENUM_BOOL(shape, message, name) 0
#define SCHEMA_ENUM_STRING(shape, message, name) 0
#define SCHEMA_ENUM_BYTES(shape, message, name) 0
#define SCHEMA_ENUM_MESSAGE(shape, message, name) 0
#define SCHEMA_ENUM_UENUM(shape, message, name)                                                    \
    SCHEMA_PASTE(SCHEMA_PASTE(_, SCHEMA_ABOUT_##shape(message, name, _ENUMTYPE)), _MAX)

#define SCHEMA_FIELD(message, storage, shape_, kind_, name_, tag_)                                 \
    {.name = SCHEMA_NAME_##shape_(name_),                                                          \
     .tag = tag_,                                                                                  \
     .kind = RW_SCHEMA_##kind_,                                                                    \
     .shape = RW_SCHEMA_##shape_,                                                                  \
     .is_view = SCHEMA_VIEW_##storage,                                                             \
     .max = SCHEMA_MAX_##storage(shape_, message, name_),                                          \
     .enum_max = SCHEMA_ENUM_##kind_(shape_, message, name_),                         \
     .choice = SCHEMA_CHOICE_##shape_(message, name_),                                             \
     .offset = SCHEMA_OFFSET_##shape_(message, name_),                                             \
     .has_offset = SCHEMA_HAS_##shape_(message, name_),                                            \
     .sub = SCHEMA_SUB_##kind_(shape_, message, name_)},

// A message without fields still needs an element: the last one has tag 0 and is not counted.
#define SCHEMA_MESSAGE(name_)                                                                      \
    static const rw_schema_field fields_of_##name_[] = {                                           \
        rw_pb_##name_##_FIELDLIST(SCHEMA_FIELD, rw_pb_##name_){.tag = 0}};                         \
    const rw_schema_message rw_schema_of_rw_pb_##name_ = {                                         \
        .name = #name_,                                                                            \
        .fields = fields_of_##name_,                                                               \
        .field_count = sizeof fields_of_##name_ / sizeof fields_of_##name_[0] - 1,                 \
        .descriptor = rw_pb_##name_##_fields,                                                      \
        .struct_bytes = sizeof(rw_pb_##name_)};

RW_SCHEMA_MESSAGES(SCHEMA_MESSAGE)

const rw_schema_field* rw_schema_find(const rw_schema_message* message, uint64_t tag) {
    uint32_t low = 0, high = message->field_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (message->fields[middle].tag == tag) {
            return &message->fields[middle];
        }
        if (message->fields[middle].tag < tag) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}
